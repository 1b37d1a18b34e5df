package nodeverb

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/nodes"
	"orrery/internal/site"
)

// Forward returns the command `orrery forward`.
func Forward(call *verb.Call) *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "forward NODE:PORT",
		Short: "Forward a loopback port of this host to a TCP port of a node",
		Long: `Forwards a port on this host's loopback to a TCP port of a node until you press
Ctrl-C. Then a browser on this host, or one behind "ssh -L", can reach the
node. Connections are made inside the node: to its loopback or, if nothing
listens there, to its address. After a switch, new connections go to the
release that is then live.

Without --listen, the port is the node's, on 127.0.0.1. Port 0 means any free
port.`,
		Example: "  orrery forward portal:80 --listen 127.0.0.1:8080",
		Args:    cobra.ExactArgs(1),
		RunE: call.WithRunningHosts(func(ctx context.Context, s *site.Site, args []string) error {
			w, err := nodes.FindNodePort(call.Session, s, args[0])
			if err != nil {
				return err
			}
			if _, err := w.Runner(ctx); err != nil {
				return err
			}
			l, err := nodes.ListenOnLoopback(listen, w.Port)
			if err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "http://%s/ -> %s\n", l.Addr(), args[0])
			nodes.Forward(ctx, l, w.Dial, errorPrinter(call.Err))
			return nil
		}),
	}
	c.Flags().StringVar(&listen, "listen", "",
		"loopback `ADDRESS:PORT` (default: 127.0.0.1, the node's port)")
	call.ReleaseFlag(c)
	return c
}

// errorPrinter returns a function that prints errors, but not the same error twice in a row.
func errorPrinter(errs io.Writer) func(error) {
	var mu sync.Mutex
	last := ""
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			last = ""
		} else if text := err.Error(); text != last {
			last = text
			verb.PrintError(errs, err)
		}
	}
}
