package screen

import (
	"context"
	"fmt"
	"io"

	"orrery/internal/host"
)

// resetSequence resets what a node may have changed on the terminal: alternate screen, mouse and paste
// reports, keyboard and character modes, and a hidden cursor.
const resetSequence = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b[!p\x1b[?25h\x1b[0m\r\n"

// Console connects this program's terminal to the console of a node, until the user leaves or the
// node ends. It passes the node's output to the terminal unchanged. The caller shows earlier
// output.
func Console(ctx context.Context, out, errs io.Writer, node string, line io.ReadWriteCloser) error {
	Flush(out)
	fmt.Fprintf(errs, "orrery: this is the console of node %s; Ctrl-] leaves it.\n", node)
	Flush(errs)
	user, letGo, err := host.MakeTerminalRaw()
	if err != nil {
		line.Close() //nolint:errcheck // nobody has typed
		return err
	}
	ended, err := runConsole(ctx, user, line)
	letGo()
	if ended {
		fmt.Fprintf(errs, "orrery: node %s has stopped.\n", node)
	}
	return err
}

// runConsole connects the terminal to the console, and resets afterwards what a node can change.
func runConsole(ctx context.Context, user *host.Terminal, line io.ReadWriteCloser) (ended bool, err error) {
	defer io.WriteString(user.Screen, resetSequence) //nolint:errcheck // it may be gone
	return user.AttachConsole(ctx, line)
}
