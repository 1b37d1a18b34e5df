package mpi

import (
	"context"
	"math"
	"strings"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test/net/serve"
)

// daemon runs at the far end what mpirun asks for, until it ends. The interface that mpirun was
// told is another one there.
func daemon(ctx context.Context, far *place.Place, by string, asked *serve.Talk) error {
	command, err := asked.Line(ctx, math.MaxInt64)
	if err != nil { // mpirun has ended without asking
		return nil //nolint:nilerr // it says itself why
	}
	return far.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c", stand(far.Command("orted"), by) + string(command)}})
}

// stand is a function of the shell that stands for orted, whatever words start that here, and that
// puts another interface into its arguments.
func stand(words []string, by string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, host.Quote(w))
	}
	return launcher + `() {
	was=
	for word; do
		shift
		[ "$was" != oob_tcp_if_include ] || word=` + host.Quote(by) + `
		was=$word
		set -- "$@" "$word"
	done
	exec ` + strings.Join(quoted, " ") + ` "$@"
}
`
}
