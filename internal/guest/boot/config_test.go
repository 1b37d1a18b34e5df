package boot

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"orrery/internal/problem"
)

func aConfig(nics int) *Config {
	c := &Config{Root: VirtioFS, Hostname: "receptor1"}
	for i := range nics {
		c.NICs = append(c.NICs, NIC{
			MAC: fmt.Sprintf("02:00:00:00:00:%02x", i), Name: fmt.Sprint("eth", i),
			Address: netip.MustParsePrefix(fmt.Sprintf("10.1.%d.201/24", i)), MTU: 9000,
		})
	}
	return c
}

func TestConfigComesBack(t *testing.T) {
	for _, n := range []int{0, 1, 8} {
		want := aConfig(n)
		word, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(word, " \"'\n") || len(word) > maxEncodedBytes {
			t.Errorf("%d interfaces make %q", n, word)
		}
		back, err := Decode("quiet " + word + " console=ttyS0\n")
		if err != nil || !reflect.DeepEqual(want, back) {
			t.Errorf("%+v came back as %+v, %v", want, back, err)
		}
	}
}

func TestConfigIsBounded(t *testing.T) {
	if _, err := aConfig(40).Encode(); problem.ExitCode(err) != int(problem.Mistake) ||
		!strings.Contains(err.Error(), "40 network interfaces") {
		t.Error(err)
	}
}

func TestConfigIsStrict(t *testing.T) {
	for line, want := range map[string]string{
		"":                              "orrery.config is missing",
		"quiet xorrery.config=e":        "orrery.config is missing",
		"orrery.config=%%%":             "damaged",
		"orrery.config=W10":             "orrery.config is invalid",
		"orrery.config=eyJuZXdlciI6MX0": "newer",
	} {
		if _, err := Decode(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", line, err)
		}
	}
}
