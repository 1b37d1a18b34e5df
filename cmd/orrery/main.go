// Command orrery turns a site file into running virtual clusters.
package main

import "orrery/internal/cli"

func main() { cli.Main(nil) }
