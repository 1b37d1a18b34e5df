package problem

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestError(t *testing.T) {
	cause := errors.New("no space left on device")
	for _, c := range []struct{ got, want string }{
		{New(Failed, "layer %s", "x").Error(), "layer x"},
		{New(Failed, "layer x").At("sv1").Error(), "sv1: layer x"},
		{New(Mistake, "unknown key %q", "cpu").At("site.toml:7").Try("did you mean %q?", "cpus").Error(),
			`site.toml:7: unknown key "cpu" (did you mean "cpus"?)`},
		{New(Failed, "layer x").Because(cause).Error(), "layer x: no space left on device"},
		{New(Failed, "layer x").Because(cause).Try("run orrery image gc").Error(),
			"layer x: no space left on device (run orrery image gc)"},
		{New(Failed, "step").Because(errors.New("a\n    b")).Try("look").Error(), "step: a\n    b\n  cure: look"},
		{List{New(Mistake, "a"), New(Mistake, "b").At("site.toml:1")}.Error(), "a\nsite.toml:1: b"},
		{New(Failed, "100%% of %s", "x").Error(), "100% of x"},
	} {
		if c.got != c.want {
			t.Errorf("got  %q\nwant %q", c.got, c.want)
		}
	}
	if err := New(Failed, "x").Because(cause); !errors.Is(err, cause) {
		t.Error("the cause cannot be found")
	}
}

func TestExit(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{New(Usage, "x"), 2},
		{New(Surprise, "x"), 6},
		{New(Interrupted, "x"), 130},
		{fmt.Errorf("while: %w", New(Locked, "x")), 5},
		{New(Left, "outer").Because(New(Locked, "inner")), 8},
		{List{New(Mistake, "a"), New(Failed, "b")}, 3},
		{fmt.Errorf("while: %w", List{New(Unable, "a")}), 4},
		{List{}.OrNil(), 0},
		{List(nil).OrNil(), 0},
		{Status(107), 107},
		{fmt.Errorf("while: %w", Status(10)), 10},
		{context.Canceled, 1},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"cpus", "memory", "swap", "pids", "privileged", "autostart", "requirements"}
	for word, want := range map[string]string{
		"cpu": "cpus", "memmory": "memory", "memroy": "memory", "Memory": "memory", "priviledged": "privileged",
		"auto_start":  "autostart",
		"requirement": "requirements", "swap": "swap", "wsap": "swap", "network": "", "": "", "üüüü": "",
		"requiremnets": "requirements",
	} {
		if got := Suggest(word, keys); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	if got := Suggest("x", nil); got != "" {
		t.Errorf("nearest of nothing: %q", got)
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("cpu", "cpus")
	f.Fuzz(func(t *testing.T, a, b string) {
		if distance(a, b) != distance(b, a) {
			t.Errorf("the way from %q to %q is another than back", a, b)
		}
		if distance(a, a) != 0 && len([]rune(a)) <= 64 {
			t.Errorf("%q is not near itself", a)
		}
	})
}
