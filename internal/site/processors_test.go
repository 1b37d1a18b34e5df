package site

import (
	"strings"
	"testing"
)

func TestProcessors(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "0": "0", "0,1": "0-1", "1,0": "0-1", "0-1": "0-1", "0-0": "0", "8,0-2,3": "0-3,8", "0,2,4": "0,2,4",
		"1-3,2-5,5": "1-5",
		"0-1023":    "0-1023", "1023": "1023", strings.Repeat("0-1023,", 100) + "7": "0-1023",
	} {
		if got, err := NormalizeProcessors(list); err != nil || got != want {
			t.Errorf("%q: %q, %v", list, got, err)
		}
	}
	for _, list := range []string{"x", "-", "1-", "-1", "3-1", "0,", "0-x", "1024", "0-1024", "0-65535",
		"99999999999999999999"} {
		if got, err := NormalizeProcessors(list); err == nil {
			t.Errorf("%q is %q", list, got)
		}
	}
	for _, c := range [][3]string{{"0-3", "0-1", "2-3"}, {"0,1", "0-1", ""}, {"5", "0-1,4-7", ""},
		{"0-1023", "0-1022", "1023"}, {"", "0", ""}, {"x", "0", ""}} {
		if got := MissingProcessors(c[0], c[1]); got != c[2] {
			t.Errorf("of %q, %q has not %q", c[0], c[1], got)
		}
	}
	if !SameProcessors("0,1", "0-1") || SameProcessors("0", "0-1") || !SameProcessors("", "") || SameProcessors("", "0") {
		t.Error("SamePin")
	}
}
