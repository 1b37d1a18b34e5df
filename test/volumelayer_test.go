package test

import (
	"strings"
	"testing"
)

// TestVolumeFromLayer: a volume begins with what the layer has at its path, also below a link, with the
// owners there. It stays what the node has made of it when the layer changes.
func TestVolumeFromLayer(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-vollayer", `
[network.lan]
subnet = "10.99.198.0/24"
[image.debian]
suite = "bookworm"
[node.n1]
id = 11
roles = ["wiki"]
memory = "96MiB"
`, files{"roles/wiki/role.toml": `
[[step]]
name = "pages"
when = "build"
script = """
useradd --uid 1234 wiki
install -d -o wiki -g wiki -m 750 /srv/pages/deep
echo first >/srv/pages/deep/index
ln -s /etc/passwd /srv/pages/link
"""
[[volume]]
name = "pages"
path = "/srv/pages"
from = "layer"
`})
	s.do("up")
	const look = "cd /srv/pages && stat -c '%U %a' deep && cat deep/index && readlink link"
	if got := s.sh("n1", look); got != "wiki 750\nfirst\n/etc/passwd" {
		t.Errorf("the volume begins with %q", got)
	}
	s.sh("n1", "mountpoint -q /srv/pages && echo mine >/srv/pages/deep/index")
	s.edit("roles/wiki/role.toml", "echo first", "echo second")
	s.do("up")
	if got := s.sh("n1", look); !strings.Contains(got, "\nmine\n") {
		t.Errorf("after another layer, the volume has %q", got)
	}
	s.do("down", "--volumes", "--yes-volumes", "it-vollayer")
	s.do("up")
	if got := s.sh("n1", look); !strings.Contains(got, "\nsecond\n") {
		t.Errorf("a new volume has %q", got)
	}
	s.do("down", "--volumes", "--yes-volumes", "it-vollayer")
	s.edit("roles/wiki/role.toml", `path = "/srv/pages"`, `path = "/srv/nothing"`)
	s.run("up").want(8, "volume pages: the layers of node n1 have no directory /srv/nothing")
}
