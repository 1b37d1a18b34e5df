package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"orrery/internal/apply/remote"
	"orrery/internal/cli/completion"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// labProgram is the name of the program with the lab. It is a program of its own, because the lab and
// its statistics are a sixth of its size, and each host of a site has a copy of orrery.
const labProgram = "orrery-lab"

// ofLab is the annotation of a verb that orrery-lab answers for.
const ofLab = "lab"

// A Lab is what only orrery-lab can do.
type Lab interface {
	// Verbs returns the verbs that measure.
	Verbs(call *verb.Call) []*cobra.Command
	// Runner runs the experiments that another host requests.
	Runner(session *control.Session) remote.ExperimentRunner
}

// labVerbs returns the verbs of the lab. Without a lab, they are names that orrery-lab answers for.
func labVerbs(call *verb.Call, lab Lab) []*cobra.Command {
	if lab != nil {
		return lab.Verbs(call)
	}
	all := []*cobra.Command{
		{Use: "lab", Short: "Measure what virtualization costs on this host"},
		{Use: "spead", Short: "Send or receive SPEAD heaps over UDP", Hidden: true},
	}
	for _, c := range all {
		c.Annotations = map[string]string{ofLab: ""}
		c.DisableFlagParsing = true
		c.RunE = func(*cobra.Command, []string) error { return becomeLab(os.Args[1:]) }
	}
	return all
}

func experimentRunner(call *verb.Call, lab Lab) remote.ExperimentRunner {
	if lab == nil {
		return nil
	}
	return lab.Runner(call.Session)
}

// isForLab reports whether a command line calls, completes or describes a verb of the lab.
func isForLab(root *cobra.Command, args []string) bool {
	if len(args) > 0 && (args[0] == "help" || completion.IsRequest(args[:1])) {
		args = args[1:]
	}
	c, _, err := root.Find(args)
	if err != nil {
		return false
	}
	_, ok := c.Annotations[ofLab]
	return ok
}

// becomeLab replaces this process by orrery-lab, with the same command line. It returns only if that
// fails.
func becomeLab(args []string) error {
	path, err := host.FindTool(labProgram)
	if err != nil {
		return err
	}
	err = unix.Exec(path, slices.Concat([]string{filepath.Base(path)}, args), os.Environ())
	return problem.New(problem.Unable, "%s cannot be started", path).Because(fmt.Errorf("exec: %w", err))
}
