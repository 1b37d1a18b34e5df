// Command orrery turns a site file into running virtual clusters.
package main

import (
	"os"

	"orrery/internal/cli"
)

func main() { os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
