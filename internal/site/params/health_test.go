package params_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/problem"
	"orrery/internal/site/params"
)

// TestExpand: parameters are replaced wherever they stand, everything else stays, and other braces are refused.
func TestExpand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.StringMatching(`[^{]{0,20}`)
		name, space := rapid.StringMatching(`[a-z][a-z0-9_]{0,8}`), rapid.StringMatching(` {0,2}`)
		var in, want strings.Builder
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			before, param := plain.Draw(t, "before"), name.Draw(t, "name")
			in.WriteString(before + "{{" + space.Draw(t, "left") + ".Param." + param + space.Draw(t, "right") + "}}")
			want.WriteString(before + "<{{" + param + ">") // a value is not expanded again
		}
		after := plain.Draw(t, "after")
		got, mistake := params.Expand(in.String()+after, func(name string) (string, *problem.Problem) {
			return "<{{" + name + ">", nil
		})
		if mistake != nil || got != want.String()+after {
			t.Errorf("%q becomes %q (%v), not %q", in.String()+after, got, mistake, want.String()+after)
		}
	})
	for _, wrong := range []string{"{{", "{{.Param.x", "{{x}}", "{{.Node.ID}}", "{{}}", "{{ .Param }}"} {
		got, mistake := params.Expand("a "+wrong, func(string) (string, *problem.Problem) { return "", nil })
		if mistake == nil {
			t.Errorf("%q becomes %q", wrong, got)
		}
	}
}
