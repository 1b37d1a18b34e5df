package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
)

// TestTalk: a program receives lines and answers with lines, and errors name the place.
func TestTalk(t *testing.T) {
	here := &place.Place{Runner: host.Local{}, Name: "bare"}
	talk, err := StartDialog(t.Context(), here, []string{"/bin/sh", "-c",
		`while read -r n; do case $n in end) exit 3;; *) echo "{\"n\": $n}"; esac; done`})
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	say := func(line string, most time.Duration) (n int, err error) {
		t.Helper()
		if err := talk.Send([]byte(line)); err != nil {
			t.Fatal(err)
		}
		var answer struct{ N int }
		err = talk.ReadJSON(t.Context(), most, &answer)
		return answer.N, err
	}
	if n, err := say("7", time.Minute); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := say("x", time.Minute); err == nil || !strings.Contains(err.Error(), "bare: the program answered") {
		t.Errorf("of an answer that is no JSON: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := talk.ReadLine(ended, time.Minute); err == nil {
		t.Error("it waits although nobody wants to know")
	}
	if _, err := say("end", time.Minute); err == nil || !strings.Contains(err.Error(), "3") {
		t.Errorf("of a program that has ended: %v", err)
	}
	talk.Close()
}

// TestTalkLate: waiting for a program that does not answer times out. Close ends the program even
// if it ignores the end of its input.
func TestTalkLate(t *testing.T) {
	t.Parallel()
	talk, err := StartDialog(t.Context(), &place.Place{Runner: host.Local{}, Name: "bare"},
		[]string{"/bin/sh", "-c", "sleep 60"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := talk.ReadLine(t.Context(), 10*time.Millisecond); err == nil ||
		!strings.Contains(err.Error(), "bare: the program did not answer within 10ms") {
		t.Errorf("%v", err)
	}
	talk.Close()
}
