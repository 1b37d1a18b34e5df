package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"orrery/internal/cli/completion"
	"orrery/internal/cli/dataverb"
	"orrery/internal/cli/hostverb"
	"orrery/internal/cli/lifeverb"
	"orrery/internal/cli/nodeverb"
	"orrery/internal/cli/releaseverb"
	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/siteverb"
	"orrery/internal/cli/value"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/control/hosts"
	"orrery/internal/control/members"
	"orrery/internal/control/overdue"
	"orrery/internal/control/register"
	"orrery/internal/control/routines"
	"orrery/internal/host"
	"orrery/internal/host/waits"
	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
)

// Version is the version of the program. The Makefile sets it (-ldflags -X).
var Version = "development"

// newCall returns the call for a command line on a machine, or on this one if machine is nil.
func newCall(machine here.Machine, in io.Reader, out, errs io.Writer, args []string) *verb.Call {
	session := &control.Session{Dirs: host.DefaultDirs(), Known: &register.KnownTwins{}, Release: control.Live,
		Version: Version, Machine: machine,
		Links: &hosts.Links{}, Overdue: overdue.Work{}, Routines: routines.Work{}, Command: commandLine(args)}
	return verb.New(session, in, out, errs)
}

// commandLine returns a command line in the form used by the journal and by locks.
func commandLine(args []string) string { return "orrery " + strings.Join(args, " ") }

// Run runs the command line and returns the exit status. A program without a lab starts orrery-lab in
// its place for verbs of the lab.
func Run(args []string, lab Lab, in io.Reader, out, errs io.Writer) int {
	return RunOn(nil, args, lab, in, out, errs)
}

// RunOn is Run on a machine, such as one in memory, or on this machine if it is nil.
func RunOn(machine here.Machine, args []string, lab Lab, in io.Reader, out, errs io.Writer) int {
	if len(args) > 1 && args[0] == asMember {
		return runRelayed(args[1:], errs)
	}
	syscall.Umask(0o022) // what nodes must be able to reach must not depend on the user's umask
	ctx, stop := interruptible()
	defer stop()
	member := len(args) > 1 && args[0] == ofMember
	if member {
		var flush func()
		in = isolateInput(in)
		out, errs, flush = screen.MemberStreams(ctx, out, errs)
		defer flush()
	}
	output := screen.TrackErrors(out)
	out, errs = screen.Escaped(output), screen.Escaped(errs)
	defer screen.Flush(out)
	defer screen.Flush(errs)
	var r *reply.Reply
	if reply.IsRequested(args) {
		r = reply.New(out, errs)
		out = r
	}
	call := newCall(machine, in, out, errs, args)
	defer call.Session.Links.Close()
	ctx = waits.WithReporter(ctx, func(text string) { fmt.Fprintf(errs, "orrery: %s\n", sanitize.Line(text)) })
	if member {
		file := args[1]
		args = args[2:]
		call.Session.Command = commandLine(args)
		if err := members.Enter(ctx, call.Session, file); err != nil {
			verb.PrintError(errs, err)
			r.Finish(err)
			return problem.ExitCode(err)
		}
	}
	root := newRoot(call, lab)
	if lab == nil && !member && isForLab(root, args) { // members may not call the lab
		err := becomeLab(args)
		verb.PrintError(errs, err)
		r.Finish(err)
		return problem.ExitCode(err)
	}
	if completion.IsRequest(args) { // it takes longer than everything else before a verb
		completion.Add(root, call.Session)
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := unexpected(ctx, screen.OrLostOutput(root.ExecuteContext(ctx), output))
	var said problem.Status
	if err != nil && !errors.As(err, &said) {
		verb.PrintError(errs, err)
	}
	r.Finish(err)
	if lost := screen.LostOutput(output); lost != nil && err == nil { // of the reply itself
		verb.PrintError(errs, lost)
		err = lost
	}
	return problem.ExitCode(err)
}

// Verbs returns the root command with all verbs, for programs that describe them.
func Verbs(lab Lab) *cobra.Command {
	return newRoot(newCall(nil, strings.NewReader(""), io.Discard, io.Discard, nil), lab)
}

func newRoot(call *verb.Call, lab Lab) *cobra.Command {
	root := &cobra.Command{
		Use:   "orrery",
		Short: "From one site file to running virtual clusters",
		Long: `Orrery turns one version-controlled site file into running virtual clusters of
system containers. Start with "orrery init", or with one of the examples.`,
		SilenceUsage: true, SilenceErrors: true,
		Args: verb.RequireSubcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	verbose := false
	root.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		if err := startLog(call.Err, verbose, os.Getenv("ORRERY_LOG"), Version); err != nil {
			return err
		}
		if err := value.Exclusive(c); err != nil {
			return err
		}
		return checkMayCall(call.Session, c, args)
	}
	root.PersistentFlags().BoolVar(&verbose, "verbose", false,
		"log which programs run, where and how long, to stderr")
	root.PersistentFlags().StringVarP(&call.Session.SiteDir, "site", "C", "",
		"site `directory` or name (default: current, or only one up)")
	root.PersistentFlags().StringVar(&call.Session.Twin, "twin", "", "use the twin called `name` instead of the site")
	root.PersistentFlags().BoolVar(&call.Session.Force, "force", false, "also change a twin of another user")
	root.PersistentFlags().Bool("json", false, "print one JSON object: result, errors and exit status")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		what, _, _ := strings.Cut(err.Error(), ": strconv.") // the part after it adds nothing
		return problem.New(problem.Usage, "%s", what).Try("%s --help", c.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: "site", Title: "The site directory:"},
		&cobra.Group{ID: "life", Title: "Bringing the site up and down:"},
		&cobra.Group{ID: "releases", Title: "Releases and twins:"},
		&cobra.Group{ID: "nodes", Title: "Working with nodes:"},
		&cobra.Group{ID: "host", Title: "This host:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			usageErrors(c)
			root.AddCommand(c)
		}
	}
	reading := []*cobra.Command{siteverb.Check(call), siteverb.Query(call), siteverb.Inventory(call),
		siteverb.SSHConfig(call),
		siteverb.Graph(call), siteverb.Import(call)}
	for _, c := range reading {
		for _, c := range append(c.Commands(), c) {
			c.RunE = siteBound.wrap(c.RunE)
		}
	}
	add("site", siteverb.Init(call), siteverb.Role(call), siteverb.Schema(call))
	add("site", reading...)
	add("life", lifeverb.Up(call), lifeverb.Plan(call), lifeverb.Down(call), lifeverb.Start(call), lifeverb.Stop(call),
		lifeverb.Restart(call), lifeverb.Renew(call), lifeverb.Move(call), hostverb.Rebalance(call), lifeverb.Resume(call),
		dataverb.Backup(call), dataverb.Restore(call))
	add("releases", releaseverb.Stage(call), releaseverb.Switch(call), releaseverb.Confirm(call),
		releaseverb.Rollback(call),
		releaseverb.Release(call), releaseverb.Twin(call), releaseverb.CI(call))
	add("nodes", nodeverb.Status(call), nodeverb.Shell(call), nodeverb.Console(call), nodeverb.Screen(call),
		nodeverb.Exec(call),
		nodeverb.Service(call), nodeverb.Cp(call), nodeverb.Forward(call), nodeverb.Logs(call), nodeverb.Journal(call),
		dataverb.Snapshot(call),
		dataverb.Volume(call), dataverb.Secret(call))
	add("host", hostverb.Host(call), hostverb.Image(call), hostverb.Mirror(call), hostverb.Doctor(call), hostverb.Ls(call),
		hostverb.Forget(call), hostverb.Names(call),
		hostverb.Version(call))
	add("host", labVerbs(call, lab)...)
	add("host", hostverb.Rehearse(call), hostverb.Witness(call))
	add("host", hostverb.Internal(call, experimentRunner(call, lab))...)
	root.SetHelpCommand(newHelp(root))
	return root
}

// usageErrors makes commands return a Usage problem for wrong arguments.
func usageErrors(c *cobra.Command) {
	if rule := c.Args; rule != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := rule(c, args)
			var said *problem.Problem
			if err == nil || errors.As(err, &said) {
				return err
			}
			return problem.New(problem.Usage, "wrong number of arguments").Try("usage: %s", c.UseLine())
		}
	}
	for _, inner := range c.Commands() {
		usageErrors(inner)
	}
}
