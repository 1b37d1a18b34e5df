package problem

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestIs(t *testing.T) {
	locked, mistake := New(Locked, "locked"), New(Mistake, "wrong")
	for _, c := range []struct {
		err error
		is  []Kind
		all int
	}{
		{nil, nil, 0},
		{locked, []Kind{Locked}, 1},
		{fmt.Errorf("behind: %w", locked), []Kind{Locked}, 1},
		{List{mistake, locked}, []Kind{Mistake, Locked}, 2},
		{errors.Join(List{mistake}, fmt.Errorf("x: %w", locked), errors.New("plain")), []Kind{Mistake, Locked, Failed}, 3},
		{errors.New("plain"), []Kind{Failed}, 1},
		{Status(Unhealthy), []Kind{Unhealthy}, 0},
		{New(Left, "left").Because(locked), []Kind{Left}, 1}, // the kind of the cause does not count
	} {
		for kind := range kindNames {
			want := false
			for _, k := range c.is {
				want = want || k == kind
			}
			if Is(c.err, kind) != want {
				t.Errorf("Is(%v, %v) is not %v", c.err, kind, want)
			}
		}
		if all := All(c.err); len(all) != c.all {
			t.Errorf("%v has the problems %v", c.err, all)
		}
	}
}

// TestLines: joined errors and the problems of a list have a line each. What wraps an error keeps its text.
func TestLines(t *testing.T) {
	list := List{New(Mistake, "a").At("site.toml:1"), New(Mistake, "b")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "plain"},
		{fmt.Errorf("node x: start: %w", New(Failed, "no room")), "node x: start: no room"},
		{list, "site.toml:1: a|b"},
		{fmt.Errorf("while: %w", list), "site.toml:1: a|b"},
		{errors.Join(errors.New("c"), errors.Join(list, errors.New("d"))), "c|site.toml:1: a|b|d"},
	} {
		if got := strings.Join(Lines(c.err), "|"); got != c.want {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}
