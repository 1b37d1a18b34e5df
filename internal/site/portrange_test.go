package site

import (
	"fmt"
	"testing"
)

func TestParseOpenings(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{nil, "[]"},
		{[]string{"udp/6000-6007", "tcp/22", "dns", "tcp/22"}, "[tcp/22 tcp/53 udp/53 udp/6000-6007]"},
		{[]string{"all"}, "[tcp/1-65535 udp/1-65535]"},
		{[]string{"tcp/1", "tcp/65535"}, "[tcp/1 tcp/65535]"},
	} {
		got, err := ParsePortRanges(c.words)
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%q gives %v, %v", c.words, got, err)
		}
	}
	for _, word := range []string{
		"", "tcp", "tcp/", "/22", "22", "tcp/0", "tcp/65536", "tcp/22-", "tcp/-22", "tcp/23-22", "tcp/+22", "tcp/022",
		"sctp/22", "tcp/22/23", "TCP/22", "tcp/22-22",
		"icmp", "tcp/ssh", " dns",
	} {
		if got, err := ParsePortRanges([]string{word}); err == nil {
			t.Errorf("%q gives %v", word, got)
		}
	}
}
