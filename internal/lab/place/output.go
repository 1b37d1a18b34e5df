package place

import (
	"bytes"
	"context"

	"orrery/internal/host"
)

// Output runs a command and gives what it printed on standard output.
func Output(ctx context.Context, r host.Runner, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := r.Run(ctx, host.Command{Args: args, Stdout: &out})
	return out.Bytes(), err
}
