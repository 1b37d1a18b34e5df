package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/engine/all"
	"orrery/internal/image"
	"orrery/internal/snapshot"
)

func (a *app) imageVerb() *cobra.Command {
	c := &cobra.Command{
		Use: "image", Short: "Manage the base images and role layers on this host",
		Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.imageBuild(), a.imageList(), a.imageGC(), a.imageVerify())
	return c
}

// used gives the digests of the layers that nodes of any site on this host stand on, or stood on in a snapshot.
func (a *app) used(c *cobra.Command, store *image.Store) (map[string]bool, error) {
	used := map[string]bool{}
	for _, e := range all.Engines(a.Dirs, store) {
		nodes, err := e.List(c.Context(), "")
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			for _, digest := range n.Layers() {
				used[digest] = true
			}
		}
	}
	kept, err := snapshot.Layers(a.Dirs)
	if err != nil {
		return nil, err
	}
	for _, digest := range kept {
		used[digest] = true
	}
	delete(used, "")
	return used, nil
}

func (a *app) imageList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the layers",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			store := image.Open(a.Dirs.State)
			infos, err := store.List()
			if err != nil {
				return err
			}
			used, err := a.used(c, store)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.out, infos)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "DIGEST\tSIZE\tBUILT\tUSED\tWHAT")
			for _, i := range infos {
				inUse := "no"
				if used[i.Digest] {
					inUse = "yes"
				}
				fmt.Fprintf(t, "%s\t%d MiB\t%s\t%s\t%s\n", i.Digest, i.Size>>20, i.Built.Local().Format("2006-01-02 15:04"), inUse, i.Title)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the versions of all packages")
	return c
}

func (a *app) imageGC() *cobra.Command {
	return &cobra.Command{
		Use:   "gc",
		Short: "Remove layers that no node uses",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := control.NeedRoot(); err != nil {
				return err
			}
			store := image.Open(a.Dirs.State)
			used, err := a.used(c, store)
			if err != nil {
				return err
			}
			gone, err := store.GC(c.Context(), used)
			var size int64
			for _, i := range gone {
				size += i.Size
				fmt.Fprintf(a.out, "removed %s  %s\n", i.Digest, i.Title)
			}
			fmt.Fprintf(a.out, "%d layers removed, %d MiB freed.\n", len(gone), size>>20)
			return err
		},
	}
}

func (a *app) imageVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [DIGEST...]",
		Short: "Check that layers are as they were built",
		RunE: func(c *cobra.Command, args []string) error {
			if err := control.NeedRoot(); err != nil {
				return err
			}
			store := image.Open(a.Dirs.State)
			if len(args) == 0 {
				infos, err := store.List()
				if err != nil {
					return err
				}
				for _, i := range infos {
					args = append(args, i.Digest)
				}
			}
			var wrong error
			for _, digest := range args {
				if err := store.Verify(c.Context(), digest); err != nil {
					printError(a.err, err)
					wrong = firstError(wrong, err)
					continue
				}
				fmt.Fprintf(a.out, "%s  as built\n", digest)
			}
			return said(wrong)
		},
	}
}
