// Command orrery-guest is the first process of a virtual machine, started from its initramfs. It
// boots the machine up to the node's own init (package guest/boot). Before that, it starts itself
// again to run the agent by which the host reaches the node (package guest/agent).
//
// On the host, it records the console output of a virtual machine (package engine/kvm/record).
package main

import (
	"context"
	"fmt"
	"os"

	"orrery/internal/engine/kvm/record"
	"orrery/internal/guest/agent"
	"orrery/internal/guest/boot"
)

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == record.Command: // on the host, as the first process of a PID namespace
		if err := record.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "orrery-guest: record:", err)
			os.Exit(1)
		}
	case os.Getpid() == 1:
		boot.Run()
	case len(os.Args) == 2 && os.Args[1] == "keep":
		boot.SuperviseAgent()
	case len(os.Args) == 2 && os.Args[1] == "agent":
		if err := boot.AllowOOMKill(); err != nil {
			fmt.Fprintln(os.Stderr, "orrery-guest: agent:", err)
		}
		if err := agent.Serve(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "orrery-guest: agent:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "orrery-guest runs only inside virtual machines")
		os.Exit(2)
	}
}
