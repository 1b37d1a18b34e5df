package site

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParsePublish(t *testing.T) {
	for text, want := range map[string]string{
		"8080:80":                 "8080:80/tcp",
		"8080:80/udp":             "8080:80/udp",
		"10.1.2.3:443:443/tcp":    "10.1.2.3:443:443/tcp",
		"8000-8010:8000-8010":     "8000-8010:8000-8010/tcp",
		"8000-8010:9000-9010/udp": "8000-8010:9000-9010/udp",
		"[2001:db8::1]:53:53/udp": "[2001:db8::1]:53:53/udp",
		"1-65535:1-65535":         "1-65535:1-65535/tcp",
		"1:65535":                 "1:65535/tcp",
	} {
		if p, err := ParsePublish(text); err != nil || p.String() != want {
			t.Errorf("%q is read as %s: %v", text, p, err)
		}
	}
	for text, why := range map[string]string{
		"":                          "no port of the node",
		"80":                        "no port of the node",
		"80/tcp":                    "no port of the node",
		":80":                       `"" is not a port`,
		"80:":                       `"" is not a port`,
		"0:80":                      `"0" is not a port`,
		"80:65536":                  `"65536" is not a port`,
		"080:80":                    `"080" is not a port`,
		"+80:80":                    `"+80" is not a port`,
		" 80:80":                    `" 80" is not a port`,
		"80:http":                   `"http" is not a port`,
		"80:80/sctp":                "neither tcp nor udp",
		"80:80/":                    "neither tcp nor udp",
		"80:80/tcp/udp":             "neither tcp nor udp",
		"8010-8000:8010-8000":       "not a range",
		"8000-8000:8000-8000":       "not a range",
		"8000-:80":                  "not a port",
		"8000-8010:80":              "have 11 and 1 ports",
		"8000:80-90":                "have 1 and 11 ports",
		"1000-2000:3000-4000":       "the maximum is 256",
		"sv1:80:80":                 `"sv1" is not an address`,
		"2001:db8::1:80:80":         "not in brackets",
		"[2001:db8::1:80:80":        "not in brackets",
		"[10.1.2.3]:80:80":          "not an address",
		"[fe80::1%eth0]:80:80":      "not an address",
		":80:80":                    `"" is not an address`,
		"10.1.2.3.4:80:80":          "not an address",
		strings.Repeat("1", 70_000): "no port of the node",
	} {
		if p, err := ParsePublish(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40q is read as %s: %v", text, p, err)
		}
	}
}

// anyPublish draws a legal Publish.
func anyPublish(t *rapid.T) Publish {
	length := rapid.IntRange(1, maxTranslated).Draw(t, "length")
	first := rapid.IntRange(1, 65536-length).Draw(t, "first")
	p := Publish{
		Ports: PortRange{rapid.SampledFrom([]string{"tcp", "udp"}).Draw(t, "proto"), uint16(first),
			uint16(first + length - 1)},
		NodePort: uint16(rapid.IntRange(1, 65536-length).Draw(t, "node")),
	}
	switch rapid.IntRange(0, 2).Draw(t, "address") {
	case 1:
		p.Address = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ipv4")))
	case 2:
		p.Address = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "ipv6")))
	}
	return p
}

// TestPublishProperties: what is printed is parsed as the same, and no text of any kind is parsed as
// something that is printed in a way that is parsed differently. Ports that count up never overlap.
func TestPublishProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPublish(t)
		if again, err := ParsePublish(p.String()); err != nil || again != p {
			t.Fatalf("%s is read as %s: %v", p, again, err)
		}
		text := rapid.StringMatching(`(\[?[0-9a-f:.]{0,9}\]?:)?[0-9]{0,6}(-[0-9]{1,6})?:[0-9]{0,6}(-[0-9]{1,6})?(/[a-z]{0,3})?`).
			Draw(t, "text")
		if p, err := ParsePublish(text); err == nil {
			if again, err := ParsePublish(p.String()); err != nil || again != p {
				t.Fatalf("%q is read as %s, and that as %s: %v", text, p, again, err)
			}
		}
		i, j := rapid.IntRange(0, 100).Draw(t, "i"), rapid.IntRange(0, 100).Draw(t, "j")
		a, ok1 := p.After(i)
		b, ok2 := p.After(j)
		if ok1 && ok2 && a.Overlaps(b) != (i == j) {
			t.Fatalf("%s and %s", a, b)
		}
	})
}
