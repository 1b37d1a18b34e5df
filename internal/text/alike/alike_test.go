package alike

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMerge: texts that are the same, or the same but for the name, are shown once, where the first was.
func TestMerge(t *testing.T) {
	var many []string
	for i := range 16 {
		many = append(many, fmt.Sprintf("node cam%d: check: node cam%[1]d is not healthy (orrery logs cam%[1]d)", i+1))
	}
	for _, test := range []struct{ texts, want []string }{
		{nil, nil},
		{[]string{"disk full"}, []string{"disk full"}},
		{[]string{"a", "a"}, []string{"a", "a"}}, // about no node
		{[]string{"node web1: start: no room"}, []string{"node web1: start: no room"}},
		{many, []string{"on cam1, cam2 and 14 more: check: node NODE is not healthy (orrery logs NODE)"}},
		{[]string{"node a: start: a mishap", "node b: start: a mishap", "node b: stop: a mishap"},
			[]string{"on a, b: start: a mishap", "node b: stop: a mishap"}},
		{[]string{"node b: x", "site.toml:3: y", "node a: z", "node c: x", "node d: x"},
			[]string{"on b, c, d: x", "site.toml:3: y", "node a: z"}},
		{[]string{"host sv1: cannot be reached; --without sv1 continues", "host sv2: cannot be reached; --without sv2 continues",
			"node sv1: cannot be reached; --without sv1 continues"},
			[]string{"on hosts sv1, sv2: cannot be reached; --without HOST continues",
				"node sv1: cannot be reached; --without sv1 continues"}},
		{[]string{"node web1 does not run (orrery up web1)", "node web2 does not run (orrery up web2)"},
			[]string{"on web1, web2: node NODE does not run (orrery up NODE)"}},
		{[]string{"node web: web web-1 /logs/web.log", "node db: db db-1 /logs/db.log"},
			[]string{"node web: web web-1 /logs/web.log", "node db: db db-1 /logs/db.log"}},
		{[]string{"node web: web web /logs/web.log", "node db: db db /logs/db.log"},
			[]string{"on web, db: NODE NODE /logs/NODE.log"}},
		{[]string{"node a: boot failed:\n    one\n    two", "node b: boot failed:\n    one\n    two"},
			[]string{"on a, b: boot failed:\n    one\n    two"}},
		{[]string{"host key is not known", "host key is not known"},
			[]string{"host key is not known", "host key is not known"}},
		{[]string{"node  : x", "nodes: y", "node", "host x"}, []string{"node  : x", "nodes: y", "node", "host x"}},
	} {
		var all []Message
		for _, text := range test.texts {
			all = append(all, Parse(text))
		}
		if got := Merge(all); !slices.Equal(got, test.want) {
			t.Errorf("%q:\n%s", test.texts, strings.Join(got, "\n"))
		}
	}
}
