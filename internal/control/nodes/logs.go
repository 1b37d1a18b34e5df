package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site"
)

// LogOptions say which logs to read.
type LogOptions struct {
	Units  []string // of the journal, or none for all
	Lines  int      // of the journal, or -1 for all
	Follow bool     // read only the journal, as it is written
	// read only the journal, from this long ago, or 0 to read all of it and the output of roles, which
	// has no times
	Since time.Duration
	Grep  *regexp.Regexp // print only the lines that match, without headings, or nil for all

	// called when the journal continues with the node's instance of another release
	Moved func(node string, release int)
}

// PrintLogs reads the logs of the selected nodes, one after the other, or all at once to follow them. It
// returns the result for each node. Following ends only with ctx, which is not an error.
func PrintLogs(ctx context.Context, c *control.Session, s *site.Site, meant string, o LogOptions,
	show func([]*site.Node) Output) ([]Result, error) {
	crowd, err := NewGroup(ctx, c, s, []string{meant}, 1)
	if err != nil {
		return nil, err
	}
	if o.Follow {
		crowd.Parallel = len(crowd.Nodes)
	}
	endings, err := crowd.RunShown(ctx, show(crowd.Nodes),
		func(ctx context.Context, i int, in host.Runner, to NodeOutput) error {
			return printLogs(ctx, c, crowd.Roll, crowd.Nodes[i].Name, in, o, to.Out(), to.Errs())
		})
	if o.Follow && ctx.Err() != nil {
		return nil, nil
	}
	return endings, err
}

// PrintNodeLogs reads the logs of one node. Absent is the reason why a node that does not run has no
// journal.
func PrintNodeLogs(ctx context.Context, c *control.Session, s *site.Site, name string, o LogOptions, out,
	errs io.Writer) (absent, err error) {
	roll, err := way.NewDirectory(ctx, c, s)
	if err != nil {
		return nil, err
	}
	in, absent := roll.Runner(name)
	return absent, printLogs(ctx, c, roll, name, in, o, out, errs)
}

// PrintBuildLog reads the output of the build of a layer.
func PrintBuildLog(c *control.Session, digest string, out io.Writer) error {
	log, err := os.Open(image.Open(c.Dirs.State).LogPath(digest))
	return printLog(out, log, err, "layer "+digest, true)
}

// printLogs prints the logs of a node: the output of its roles and, if the node can be entered, its
// journal.
func printLogs(ctx context.Context, c *control.Session, roll *way.Directory, name string, in host.Runner, o LogOptions,
	out, errs io.Writer) (err error) {
	if o.Grep != nil {
		matching := grep(o.Grep, out)
		defer func() { err = cmp.Or(err, matching.Flush()) }()
		out = matching
	}
	if !o.Follow && o.Since == 0 {
		log, err := roll.Log(ctx, name)
		if err := printLog(out, log, err, "node "+name, o.Grep == nil); err != nil {
			return err
		}
	}
	if in == nil {
		return nil
	}
	if o.Grep == nil {
		fmt.Fprintf(out, "==> journal of node %s\n", name)
	}
	run := host.Command{Args: o.journalctl(), Stdout: out, Stderr: errs}
	if !o.Follow {
		return in.Run(ctx, run)
	}
	return newFollower(c, roll, name, func(release int) { o.Moved(name, release) }).follow(ctx, in, run)
}

// journalctl returns the command that reads the journal in a node.
func (o LogOptions) journalctl() []string {
	lines := "all"
	if o.Lines >= 0 {
		lines = strconv.Itoa(o.Lines)
	}
	command := []string{"journalctl", "--no-pager", "--lines", lines}
	if o.Since > 0 { // by the node's clock, which wrote the times
		command = append(command, fmt.Sprintf("--since=-%dus", o.Since.Microseconds()))
	}
	if o.Follow {
		command = append(command, "--follow")
	}
	for _, unit := range o.Units {
		command = append(command, "--unit", unit)
	}
	return command
}

// printLog prints an opened log. With a heading, it also prints whose log it is, and the name of its file if
// that is on this host.
func printLog(to io.Writer, log io.ReadCloser, err error, of string, heading bool) error {
	if errors.Is(err, fs.ErrNotExist) {
		if heading {
			fmt.Fprintf(to, "==> %s: no output\n", of)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // it was only read
	if f, here := log.(*os.File); here {
		of += " (" + f.Name() + ")"
	}
	if heading {
		fmt.Fprintf(to, "==> %s\n", of)
	}
	_, err = io.Copy(to, log)
	return err
}
