// Await waits for the agents of virtual machines. It gets the directories of their sockets and
// prints a line for each directory when its agent has answered. It works alike for all peers.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"orrery/internal/transport/rpc"
)

func main() {
	var all sync.WaitGroup
	for _, dir := range os.Args[1:] {
		all.Go(func() {
			for !whole(dir) {
				time.Sleep(5 * time.Millisecond)
			}
			agent, err := rpc.DialAgent(context.Background(), dir)
			if err == nil {
				err = agent.Ping(context.Background())
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "await: %s: %v\n", dir, err)
				os.Exit(1)
			}
			fmt.Println(dir)
		})
	}
	all.Wait()
}

// whole reports whether all sockets of the agent exist.
func whole(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, rpc.SocketName(rpc.Ports-1)))
	return err == nil
}
