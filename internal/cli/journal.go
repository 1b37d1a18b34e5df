package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/journal"
	"orrery/internal/phrase"
	"orrery/internal/site"
)

func (a *app) journalVerb() *cobra.Command {
	var steps bool
	var runs int
	c := &cobra.Command{
		Use:   "journal",
		Short: "Show who did what to this site on this host, when, and how it ended",
		Args:  cobra.NoArgs,
		RunE: a.asRoot(a.onSite(func(_ context.Context, s *site.Site, _ []string) error {
			entries, damaged, err := a.Entries(s)
			if err != nil {
				return err
			}
			if len(damaged) > 0 {
				fmt.Fprintf(a.err, "orrery: %s: %s cannot be read and are left out: %s.\n", a.Dirs.Journal(s.Key()),
					phrase.Count(len(damaged), "line"), phrase.List(numbers(damaged), 8))
			}
			entries = journal.LastRuns(entries, runs)
			return a.answer(entries, func() { a.printJournal(entries, steps) })
		})),
	}
	c.Flags().BoolVar(&steps, "steps", false, "every step, not only those that failed")
	c.Flags().IntVarP(&runs, "runs", "n", 20, "how many runs to show")
	return withJSON(c, "print JSON")
}

func (a *app) printJournal(entries []journal.Entry, steps bool) {
	for _, e := range entries {
		when := e.Time.Local().Format(time.DateTime)
		switch {
		case e.Kind == "begin":
			fmt.Fprintf(a.out, "%s  %s: %s\n", when, inset(e.Who), inset(e.Command))
		case e.Kind == "end":
			fmt.Fprintf(a.out, "%s  ended after %.1f s: %s\n", when, e.Seconds, inset(e.Result))
		case steps || e.Result != "done":
			fmt.Fprintf(a.out, "%s    %s: %s (%.2f s)\n", when, e.Step, inset(e.Result), e.Seconds)
		}
	}
}

func numbers(all []int) []string {
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = strconv.Itoa(n)
	}
	return words
}

// inset keeps the lines of a text apart from those of the journal, which they could be taken for.
func inset(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }
