package screen

import (
	"context"
	"fmt"
	"io"

	"orrery/internal/host"
)

// calm undoes what a node may have asked of the terminal: another screen, reports of the mouse and
// of what is pasted, other keys and characters, a hidden cursor.
const calm = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b[!p\x1b[?25h\x1b[0m\r\n"

// Console connects this program's terminal to the console of a node, until whoever sits there
// leaves or the node ends. All that comes from there reaches the terminal as it is; what was said
// before is for the caller to show.
func Console(ctx context.Context, out, errs io.Writer, node string, line io.ReadWriteCloser) error {
	Flush(out)
	fmt.Fprintf(errs, "orrery: this is the console of node %s; Ctrl-] leaves it.\n", node)
	Flush(errs)
	user, letGo, err := host.HoldTerminal()
	if err != nil {
		line.Close() //nolint:errcheck // nobody has typed
		return err
	}
	ended, err := sit(ctx, user, line)
	letGo()
	if ended {
		fmt.Fprintf(errs, "orrery: node %s has ended.\n", node)
	}
	return err
}

// sit leaves the terminal as it was, as far as a node can change it.
func sit(ctx context.Context, user *host.Terminal, line io.ReadWriteCloser) (ended bool, err error) {
	defer io.WriteString(user.Screen, calm) //nolint:errcheck // it may be gone
	return user.Work(ctx, line)
}
