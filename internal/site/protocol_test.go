package site

import (
	"strings"
	"testing"
)

func TestParseProtocols(t *testing.T) {
	for text, want := range map[string]string{
		"ptp":               "0x88f7",
		"0x88f7 ptp 0x88A4": "0x88a4,0x88f7",
		"0x0600":            "0x0600",
		"0x05ff":            `"0x05ff" is not an Ethernet protocol`,
		"88f7":              `"88f7" is not an Ethernet protocol`,
		"0x88f":             `"0x88f" is not an Ethernet protocol`,
		"0x+8f7":            `"0x+8f7" is not an Ethernet protocol`,
		"lldp":              `"lldp" is not an Ethernet protocol`,
		"0x86dd":            `"0x86dd" is filtered by address and cannot be listed`,
		"0x8100":            `"0x8100" is filtered by address and cannot be listed`,
	} {
		all, err := ParseProtocols(strings.Fields(text))
		got := FormatProtocols(all)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s instead of %s", text, got, want)
		}
	}
}
