package place

import (
	"context"
	"strings"

	"orrery/internal/problem"
)

// Digest returns the SHA-256 of a program's file in this place, in hexadecimal digits.
func (p *Place) Digest(ctx context.Context, program string) (string, error) {
	words := p.Command(program)
	file := words[len(words)-1]
	out, err := Output(ctx, p, "/bin/sh", "-c", `sha256sum "$(command -v "$1")"`, "sh", file)
	digest, _, ok := strings.Cut(string(out), " ")
	if err != nil || !ok {
		return "", problem.New(problem.Failed, "%s: the digest of %s is missing", p.Name, program).Because(err)
	}
	return digest, nil
}
