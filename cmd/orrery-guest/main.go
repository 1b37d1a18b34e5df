// Orrery-guest is what a virtual machine starts first, out of its initramfs: it gets the machine up to the node's own init (package guest/boot). Before that
// it starts itself once more, as what keeps the agent by which the host reaches the node (package guest/agent).
package main

import (
	"context"
	"fmt"
	"os"

	"orrery/internal/guest/agent"
	"orrery/internal/guest/boot"
)

func main() {
	switch {
	case os.Getpid() == 1:
		boot.Run()
	case len(os.Args) == 2 && os.Args[1] == "keep":
		boot.Keep()
	case len(os.Args) == 2 && os.Args[1] == "agent":
		if err := boot.Killable(); err != nil {
			fmt.Fprintln(os.Stderr, "orrery-guest: agent:", err)
		}
		if err := agent.Serve(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "orrery-guest: agent:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "orrery-guest runs in virtual machines, which start it by themselves")
		os.Exit(2)
	}
}
