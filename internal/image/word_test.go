package image

import "testing"

// TestBelieved: exactly one of the stated digests of a layer is trusted.
func TestBelieved(t *testing.T) {
	for _, c := range []struct {
		said []string
		own  int
		want string
	}{
		{nil, -1, ""},
		{[]string{"a", "b", "b"}, -1, "b"},
		{[]string{"b", "a"}, -1, "b"},
		{[]string{"a", "b", "b"}, 0, "a"},
		{[]string{"c", "a", "b", "a", "b"}, -1, "a"},
	} {
		if got := TrustedDigest(c.said, c.own); got != c.want {
			t.Errorf("of %v, with %d, %q is taken", c.said, c.own, got)
		}
	}
}
