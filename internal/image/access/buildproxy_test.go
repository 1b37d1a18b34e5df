package access

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"orrery/internal/site/distro"

	"orrery/internal/site"
)

// TestDivert: apt, pip and everything else use proxies on the loopback, which use the host's own
// proxies.
func TestDivert(t *testing.T) {
	a := &Access{
		env: map[string]string{
			"http_proxy": "http://p1:3128", "HTTPS_PROXY": "http://p2:3128", "no_proxy": "near.example", "PIP_PROXY": "p3:3128",
			"PIP_INDEX_URL": "http://127.0.0.1:3141/root/pypi", "PIP_EXTRA_INDEX_URL": "https://pypi.org/simple",
		},
		Apt: []string{
			distro.Option("Acquire::http::Proxy", "http://p4:3142"),
			distro.Option("Acquire::http::Proxy::near.example", "DIRECT"), distro.Option("Acquire::Retries", "3"),
		},
	}
	from := []distro.Source{{URI: "http://deb.debian.org/debian"}, {URI: "mirror+https://m.example/list"},
		{URI: "copy:///srv/mirror"}}
	places := a.HostPorts(from, site.Mirror{Hosts: []string{"github.com", "10.1.2.3:8080"}})
	want := []string{
		"deb.debian.org:80", "m.example:443", "127.0.0.1:3141", "pypi.org:443", "files.pythonhosted.org:443",
		"github.com:80", "github.com:443", "10.1.2.3:8080",
	}
	if !slices.Equal(places, want) {
		t.Errorf("places are %q", places)
	}
	w := a.Redirect(places)
	defer w.Close()
	through := map[string]string{}
	for _, p := range w.ways {
		for _, uri := range []string{"http://deb.debian.org", "https://pypi.org", "http://near.example"} {
			u, _ := url.Parse(uri)
			by, err := p.up(u)
			if err != nil {
				t.Fatal(err)
			}
			if by != nil {
				through[p.address] += by.Host + " "
			} else {
				through[p.address] += "- "
			}
		}
	}
	for address, want := range map[string]string{
		aptProxy: "p4:3142 p4:3142 - ", envProxy: "p1:3128 p2:3128 - ", pipProxy: "p3:3128 p3:3128 p3:3128 ",
	} {
		if through[address] != want {
			t.Errorf("behind %s are %q instead of %q", address, through[address], want)
		}
	}
	if a.env["http_proxy"] != "http://"+envProxy || a.env["no_proxy"] != "" || a.env["PIP_PROXY"] != "http://"+pipProxy {
		t.Errorf("the environment is %v", a.env)
	}
	if got := strings.Join(a.Apt, " "); strings.Contains(got, "p4") || !strings.Contains(got, aptProxy) ||
		!strings.Contains(got, "Retries") {
		t.Errorf("apt is told %s", got)
	}
}
