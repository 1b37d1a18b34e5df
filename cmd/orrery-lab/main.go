// Command orrery-lab is orrery with the lab, which measures what virtualization costs. The program
// orrery starts it for the verb lab.
package main

import (
	"orrery/internal/cli"
	"orrery/internal/cli/labverb"
)

func main() { cli.Main(labverb.Lab{}) }
