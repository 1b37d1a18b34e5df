package mpi

import (
	"context"
	"strings"

	"orrery/internal/host"
	"orrery/internal/lab/place"
)

// daemon runs at the far end what mpirun asks for, until it ends. The interface that mpirun was told is another one there.
func daemon(ctx context.Context, far *place.Place, by string, asked <-chan string) error {
	var command string
	select {
	case command = <-asked:
	case <-ctx.Done():
		return nil
	}
	if command == "" { // mpirun has ended without asking
		return nil
	}
	return far.Run(ctx, host.Command{Args: []string{"/bin/sh", "-c", stand(far.Command("orted"), by) + command}})
}

// stand is a function of the shell that stands for orted, whatever words start that here, and that puts another interface into its arguments.
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
