package value

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/plan"
)

// TestEnding: the two flags exclude each other, and the timeout must be longer than 0.
func TestEnding(t *testing.T) {
	for _, c := range []struct {
		args []string
		want plan.StopMode
		ok   bool
	}{
		{nil, plan.StopMode{}, true},
		{[]string{"--hard"}, plan.StopMode{Hard: true}, true},
		{[]string{"--timeout", "5m"}, plan.StopMode{Timeout: 5 * time.Minute}, true},
		{[]string{"--timeout", "0"}, plan.StopMode{}, false},
		{[]string{"--timeout", "-1s"}, plan.StopMode{}, false},
		{[]string{"--timeout", "soon"}, plan.StopMode{}, false},
		{[]string{"--hard", "--timeout", "5m"}, plan.StopMode{}, false},
	} {
		var got plan.StopMode
		v := EndingFlags(&cobra.Command{SilenceErrors: true, SilenceUsage: true,
			RunE: func(*cobra.Command, []string) error { return nil }}, &got)
		v.SetArgs(append([]string{}, c.args...))
		if err := v.Execute(); (err == nil) != c.ok || c.ok && got != c.want {
			t.Errorf("%q: %+v, %v", c.args, got, err)
		}
	}
}
