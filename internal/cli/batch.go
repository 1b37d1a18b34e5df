package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/plan"
	"orrery/internal/site"
)

// batchFlag lets a verb be told how many nodes are disturbed at once.
func batchFlag(c *cobra.Command, b *site.Batch) {
	c.Flags().Var((*batchValue)(b), "batch", "disturb this many nodes at once, or this share of them (\"25%\"), and continue only when they are healthy\n(default: as groups say, else all at once)")
}

// A batchValue is what is said of batches on the command line.
type batchValue site.Batch

func (b *batchValue) Set(text string) error {
	parsed, ok := site.ParseBatch(text)
	if !ok {
		return errors.New(`a number of nodes from 1, or a share from 1% to 100%`)
	}
	*b = batchValue(parsed)
	return nil
}

func (b *batchValue) Type() string { return "NODES" }

func (b *batchValue) String() string {
	if *b == (batchValue{}) {
		return ""
	}
	return site.Batch(*b).String()
}

// printBatches tells in which order the nodes of a plan are disturbed.
func printBatches(w io.Writer, p *plan.Plan) {
	if len(p.Batches) == 0 {
		return
	}
	fmt.Fprint(w, "\nBatches, each begun when the nodes of those before are healthy:\n")
	for n, nodes := range p.Batches {
		fmt.Fprintf(w, "%4d  %s\n", n+1, strings.Join(nodes, ", "))
	}
}
