package nodeverb

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/host"
	"orrery/internal/site"
)

// Screen returns the command `orrery screen`.
func Screen(call *verb.Call) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "screen NODE",
		Short: "Open the screen of a node with a disk image, or take a picture",
		Long: `Opens the screen, keyboard and pointer of a node that boots a disk image to VNC
viewers, and prints the path of the socket to connect to. Only you can connect,
and only until you press Ctrl-C. On this host, run "vncviewer SOCKET"; on
another, "ssh -L 5901:SOCKET HOST" and "vncviewer localhost:1".

With --png, it writes a picture of the current screen, and ends.`,
		Example: "  orrery screen desktop\n  orrery screen desktop --png desktop.png",
		Args:    cobra.ExactArgs(1),
		RunE: call.AsRoot(call.WithRunning(func(ctx context.Context, s *site.Site, args []string) error {
			of, err := nodes.ScreenOf(ctx, call.Session, s, args[0])
			if err != nil {
				return err
			}
			if file != "" {
				return writePicture(ctx, call.Out, of, file)
			}
			return control.JournalIfMember(call.Session, s, func() error { return serveScreen(ctx, call.Output, args[0], of) })
		})),
	}
	c.Flags().StringVar(&file, "png", "", "write a picture to this `file` (-: standard output) and end")
	call.ReleaseFlag(c)
	return c
}

// serveScreen lets viewers connect, until it is interrupted.
func serveScreen(ctx context.Context, to verb.Output, name string, of host.Screen) error {
	first, err := of.Open(ctx) // report errors to the caller rather than to the viewer
	if err != nil {
		return err
	}
	_ = first.Close()
	l, err := nodes.ListenForCaller(name)
	if err != nil {
		return err
	}
	fmt.Fprintln(to.Out, l.Addr())
	fmt.Fprintf(to.Err, "orrery: VNC viewers can connect to the screen of node %s until Ctrl-C.\n", name)
	nodes.Forward(ctx, l, of.Open, errorPrinter(to.Err))
	return nil
}

// writePicture writes a picture of a screen.
func writePicture(ctx context.Context, out io.Writer, of host.Screen, file string) error {
	picture, err := of.Picture(ctx)
	if err != nil {
		return err
	}
	if file == "-" {
		_, err = screen.Raw(out).Write(picture)
		return err
	}
	return host.WriteNamed(file, picture, 0o600)
}
