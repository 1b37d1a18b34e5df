package cli

import (
	"fmt"
	"orrery/internal/cli/reply"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func versionVerb(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			revision := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = " " + s.Value[:min(12, len(s.Value))]
					}
				}
			}
			if reply.Wanted(a.out) {
				return reply.JSON(a.out, map[string]string{"version": a.session.Version, "revision": strings.TrimSpace(revision), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			fmt.Fprintf(a.out, "orrery %s%s %s %s/%s\n", a.session.Version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
