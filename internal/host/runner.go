// Package host runs commands, writes files and opens connections on a machine: this one, or any
// other place with a Runner. It also contains what Orrery needs of this machine itself: programs,
// directories, locks, logs and kernel settings.
//
// Every place is a Runner: the bare host, a container, a virtual machine, a machine over SSH. Code
// that applies a role, checks health or runs a benchmark gets a Runner, and calls Run, Put and Dial
// without knowing which kind of place it is. Local is the Runner of this machine, and engines
// provide those of nodes. Output runs a command on any Runner and limits what it prints, because a
// node may print anything.
package host

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"orrery/internal/tree"
)

// A Runner is a place where commands run.
type Runner interface {
	// Run runs a command to its end. It returns a *RunError if the command cannot be run or does
	// not succeed.
	Run(ctx context.Context, c Command) error
	// Put writes files, each atomically, and creates missing parent directories.
	Put(ctx context.Context, files ...File) error
	// Dial connects from that place, like net.Dialer.DialContext.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// A Viewer is a Runner of a place whose files this host can open without running anything there.
type Viewer interface {
	Runner
	// View opens the root directory of the place as the place itself sees it, through its own
	// mounts. The function owned reports whether a user or group id, as this host sees it, belongs
	// to the place. These ids determine what the root of the place may read (tree.Root.OpenOwned).
	View() (root *tree.Root, owned func(id uint32) bool, err error)
}

// A Command is a program with its arguments, environment and streams.
type Command struct {
	Args   []string
	Env    []string // KEY=value, added to a small standard environment
	User   string   // or "" for root
	Stdin  io.Reader
	Stdout io.Writer // nil: the end of it is kept for the RunError
	Stderr io.Writer // nil: the end of it is kept for the RunError
	TTY    bool      // the command has a terminal, in place of Stdin, Stdout and Stderr

	Terminal *Terminal // the terminal of the user, or nil for that of this program
	// Pseudo opens both ends of a pseudo-terminal of the place where the command runs. If it is
	// nil, the command gets one of this host.
	Pseudo func() (ours, theirs *os.File, err error)
}

// A File is content for a path.
type File struct {
	Path    string
	Content []byte
	Owner   string // "user:group" of the place, or "" for root:root
	Mode    uint32
	Link    string // if set, create a symbolic link to this path instead
}

// A RunError describes a command that did not succeed: where it ran, its arguments, and what it
// printed.
type RunError struct {
	Place   string // host or node
	Command []string
	Status  int    // exit status, or -1 if it did not run or was killed
	Output  string // the end of what it printed
	Err     error
}

// Error returns the command, how it ended, and the end of its output.
func (e *RunError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Status)
	if e.Status < 0 && e.Err != nil {
		how = e.Err.Error()
	}
	text := fmt.Sprintf("%s: %s: %s", e.Place, e.command(), how)
	if out := strings.TrimSpace(e.Output); out != "" {
		text += "\n    " + strings.ReplaceAll(out, "\n", "\n    ")
	}
	return text
}

// command returns the command on one line of readable length. Of an inline script, it returns only
// the first line.
func (e *RunError) command() string {
	line, rest, _ := strings.Cut(strings.Join(e.Command, " "), "\n")
	if runes := []rune(line); len(runes) > 100 {
		line, rest = string(runes[:100]), "…"
	}
	if rest != "" {
		line += " …"
	}
	return line
}

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Err }
