package hostverb

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
)

// Version returns the command `orrery version`.
func Version(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  orrery version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			revision := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = " " + s.Value[:min(12, len(s.Value))]
					}
				}
			}
			if reply.IsJSON(call.Out) {
				return reply.JSON(call.Out, map[string]string{"version": call.Session.Version,
					"revision": strings.TrimSpace(revision), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			fmt.Fprintf(call.Out, "orrery %s%s %s %s/%s\n", call.Session.Version, revision, runtime.Version(), runtime.GOOS,
				runtime.GOARCH)
			return nil
		},
	}
}
