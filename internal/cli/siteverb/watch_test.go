package siteverb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"testing"
	"time"

	"orrery/internal/problem"
)

// TestWatchCheck: a result is printed when it changes, whether or not it is an error, until the user
// ends it.
func TestWatchCheck(t *testing.T) {
	results := []string{"good\n", "good\n", "", "", "good\n"}
	var out bytes.Buffer
	tried := 0
	once := func(out io.Writer) error {
		tried++
		if text := results[tried-1]; text != "" {
			fmt.Fprint(out, text)
			return nil
		}
		return problem.List{problem.New(problem.Mistake, "wrong").At("site.toml:3")}
	}
	pause := func(context.Context, time.Duration) error {
		if tried == len(results) {
			return errors.New("interrupted")
		}
		return nil
	}
	if err := watchCheck(t.Context(), &out, once, pause); err != nil || tried != len(results) {
		t.Errorf("%v after %d", err, tried)
	}
	got := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d$`).ReplaceAllString(out.String(), "TIME")
	if want := "TIME\ngood\n\nTIME\norrery: site.toml:3: wrong\n\nTIME\ngood\n\n"; got != want {
		t.Errorf("got %q", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if watchPause(ended, time.Hour) == nil {
		t.Error("it goes on after its end")
	}
}
