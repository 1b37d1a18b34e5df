package role

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"orrery/internal/site"
)

// TestWatch: the configuration fails if a service exits as soon as it has started, and in no other
// case. The error has its last output.
//
// Promise (What others print and answer): What a service printed before it died is shown with
// control characters visible.
func TestWatch(t *testing.T) {
	const runs = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nResult=success\n"
	for name, c := range map[string]struct {
		state  string
		health bool
		want   string
		looks  int
	}{
		"it runs":                  {runs + "Type=simple\nNRestarts=0\n", false, "", 2},
		"it says that it is ready": {runs + "Type=notify\nNRestarts=0\n", false, "", 1},
		"it is started again":      {runs + "Type=simple\nNRestarts=N\n", false, "started repeatedly", 2},
		"it waits for its restart": {"LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nResult=exit-code\nType=exec\n",
			false, "failing repeatedly (exit-code)", 2},
		"it was started again before": {runs + "Type=simple\nNRestarts=3\n", false, "", 2},
		"it has failed": {"LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=signal\nType=simple\n",
			false, "failed (signal)", 2},
		"it has ended": {"LoadState=loaded\nActiveState=inactive\nSubState=dead\nResult=success\nType=simple\n",
			false, "stopped", 2},
		"a health check is behind": {"LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=signal\nType=simple\n",
			true, "", 0},
		"it has done what it is for": {
			"LoadState=loaded\nActiveState=inactive\nSubState=dead\nResult=success\nType=oneshot\nConditionTimestampMonotonic=1\n",
			false, "", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &site.Site{
				Name: "karoo", Roles: []site.Role{{Name: "web", Services: []string{"web.service"}}},
				Nodes: []site.Node{{Name: "one", ID: 1, Roles: []string{"web"}}},
			}
			if c.health {
				s.Roles[0].Health = []site.HealthCheck{{TCP: 80, Timeout: time.Second}}
			}
			j, in := changed(t, s, func() { s.Roles[0].Env = map[string]string{"A": "b"} })
			looks := 0
			in.answer = func(args []string) (string, error) {
				switch {
				case len(args) > 1 && args[1] == "show":
					looks++
					return strings.ReplaceAll(c.state, "NRestarts=N", fmt.Sprint("NRestarts=", looks)), nil
				case args[0] == "journalctl":
					return "\x1b[2Jno configuration\n", nil
				}
				return "", nil
			}
			err := j.Configure(t.Context())
			if (err != nil) != (c.want != "") {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				whole := fmt.Sprintf("%v %v", err, errors.Unwrap(err))
				if !strings.Contains(whole, "web.service") || !strings.Contains(whole, c.want) ||
					!strings.Contains(whole, "no configuration") || strings.Contains(whole, "\x1b") {
					t.Errorf("it is %q", whole)
				}
			}
			if looks != c.looks {
				t.Errorf("%d looks, not %d: %s", looks, c.looks, strings.Join(in.done, "; "))
			}
		})
	}
}

// TestWatchStarted: services that started at boot are watched as well.
func TestWatchStarted(t *testing.T) {
	s := &site.Site{
		Name: "karoo", Roles: []site.Role{{Name: "web", Services: []string{"web.service"}}},
		Nodes: []site.Node{{Name: "one", ID: 1, Roles: []string{"web"}}},
	}
	j, in := changed(t, s, func() {})
	j.Injected, j.Starts = true, []string{"web.service"}
	in.answer = func(args []string) (string, error) {
		if args[1] == "show" {
			return "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nResult=exit-code\nType=simple\n", nil
		}
		return "", nil
	}
	if err := j.Configure(t.Context()); err == nil || !strings.Contains(err.Error(), "web.service") {
		t.Errorf("error %v", err)
	}
	if len(done(in)) != 1 { // only the query for its last output
		t.Errorf("done was %q", done(in))
	}
}
