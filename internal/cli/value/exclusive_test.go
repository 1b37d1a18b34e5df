package value

import (
	"testing"

	"github.com/spf13/cobra"

	"orrery/internal/problem"
)

// TestExclusive: mutually exclusive flags cause a Usage problem that names them and the help.
func TestExclusive(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--a"}, ""},
		{[]string{"--b", "--c"}, ""},
		{[]string{"--b", "--a"}, "--a and --b cannot be used together (verb --help)"},
	} {
		v := &cobra.Command{Use: "verb"}
		for _, name := range []string{"a", "b", "c"} {
			v.Flags().Bool(name, false, "")
		}
		v.MarkFlagsMutuallyExclusive("a", "b")
		if err := v.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		err := Exclusive(v)
		if (err == nil) != (c.want == "") || err != nil &&
			(err.Error() != c.want || problem.ExitCode(err) != int(problem.Usage)) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}
