package place

import (
	"context"

	"orrery/internal/host"
)

// MaxOutputBytes limits how much a command of a test may print, in bytes.
const MaxOutputBytes = 64 << 20

// Output runs a command and returns what it printed on standard output.
func Output(ctx context.Context, r host.Runner, args ...string) ([]byte, error) {
	return host.Output(ctx, r, host.Command{Args: args}, MaxOutputBytes)
}
