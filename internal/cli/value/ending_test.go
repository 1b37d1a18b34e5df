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
		want plan.Ending
		ok   bool
	}{
		{nil, plan.Ending{}, true},
		{[]string{"--hard"}, plan.Ending{Hard: true}, true},
		{[]string{"--timeout", "5m"}, plan.Ending{Timeout: 5 * time.Minute}, true},
		{[]string{"--timeout", "0"}, plan.Ending{}, false},
		{[]string{"--timeout", "-1s"}, plan.Ending{}, false},
		{[]string{"--timeout", "soon"}, plan.Ending{}, false},
		{[]string{"--hard", "--timeout", "5m"}, plan.Ending{}, false},
	} {
		var got plan.Ending
		v := Ending(&cobra.Command{SilenceErrors: true, SilenceUsage: true,
			RunE: func(*cobra.Command, []string) error { return nil }}, &got)
		v.SetArgs(append([]string{}, c.args...))
		if err := v.Execute(); (err == nil) != c.ok || c.ok && got != c.want {
			t.Errorf("%q: %+v, %v", c.args, got, err)
		}
	}
}
