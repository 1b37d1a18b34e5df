package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
)

func (a *app) logsVerb() *cobra.Command {
	var layer string
	var follow, raw bool
	var lines int
	c := &cobra.Command{
		Use:   "logs [NODE] [UNIT...]",
		Short: "What roles and services of a node printed",
		Long: `Prints what the roles printed when they were applied to a node, then the end of the journal of its systemd
(of the named units only, if any are named). --layer DIGEST prints the building of a layer instead.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := needRoot(); err != nil {
				return err
			}
			if raw {
				a.raw()
			}
			if layer != "" {
				return a.printLog(image.Open(a.dirs.State).LogOf(layer), "layer "+layer)
			}
			s, err := a.load()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return problem.New(problem.Usage, "of which node?").Try("orrery logs NODE")
			}
			if _, err := declared(s, args[0]); err != nil {
				return err
			}
			if !follow {
				if err := a.printLog(filepath.Join(a.dirs.Logs(s.Key()), args[0]+".log"), "node "+args[0]); err != nil {
					return err
				}
			}
			in, err := a.running(c.Context(), s, args[0])
			if err != nil {
				fmt.Fprintf(a.err, "orrery: %v\n", err)
				return nil
			}
			command := []string{"journalctl", "--no-pager", "--lines", strconv.Itoa(lines)}
			if follow {
				command = append(command, "--follow")
			}
			for _, unit := range args[1:] {
				command = append(command, "--unit", unit)
			}
			fmt.Fprintf(a.out, "==> journal of node %s\n", args[0])
			return in.Run(c.Context(), host.Command{Args: command, Stdout: a.out, Stderr: a.err})
		},
	}
	c.Flags().StringVar(&layer, "layer", "", "print the building of the layer with this `digest`")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing the journal")
	rawFlag(c, &raw)
	c.Flags().IntVarP(&lines, "lines", "n", 200, "lines of the journal")
	a.releaseFlag(c)
	return c
}

func (a *app) printLog(path, of string) error {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		fmt.Fprintf(a.out, "==> %s: nothing was printed\n", of)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(a.out, "==> %s (%s)\n", of, path)
	_, err = io.Copy(a.out, f)
	return err
}
