package mpi

import (
	"context"
	"math"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test/net/serve"
	"orrery/internal/text/shell"
)

// daemon runs at the far end the command that mpirun requests, until it ends. It replaces the
// interface in the command by that of the far end.
func daemon(ctx context.Context, far *place.Place, by string, asked *serve.Dialog) error {
	command, err := asked.ReadLine(ctx, math.MaxInt64)
	if err != nil { // mpirun ended without a request
		return nil //nolint:nilerr // it says itself why
	}
	return far.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c",
		ortedFunction(far.Command("orted"), by) + string(command)}})
}

// ortedFunction returns a shell function that takes the place of orted. It runs the words that start orted
// in this place, and replaces the interface in the arguments.
func ortedFunction(words []string, by string) string {
	return launcher + `() {
	was=
	for word; do
		shift
		[ "$was" != oob_tcp_if_include ] || word=` + shell.Quote(by) + `
		was=$word
		set -- "$@" "$word"
	done
	exec ` + shell.Join(words) + ` "$@"
}
`
}
