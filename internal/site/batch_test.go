package site

import "testing"

func TestBatch(t *testing.T) {
	for text, of10 := range map[string]int{"1": 1, "3": 3, "40": 40, "25%": 2, "1%": 1, "99%": 9, "100%": 10} {
		b, ok := ParseBatch(text)
		if !ok || b.Size(10) != of10 || b.String() != text {
			t.Errorf("%s is %s, %d of 10 nodes, %t", text, b, b.Size(10), ok)
		}
	}
	for _, text := range []string{"", "0", "-1", "+1", "%", "0%", "101%", "1.5", "25 %", "all", "99999999999999999999"} {
		if b, ok := ParseBatch(text); ok {
			t.Errorf("%q is taken for %s", text, b)
		}
	}
	if b := (Batch{}); b.IsLimited() || b.Size(7) != 7 {
		t.Error("no bound is one")
	}
}
