package cli

import (
	"errors"
	"io/fs"

	"orrery/internal/problem"
)

// cause gives the reason of a failed operation on a file without the operation and the path, which the problem names already.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// said keeps the exit status of an error that has been printed already.
func said(err error) error {
	if err == nil {
		return nil
	}
	return problem.Status(problem.Exit(err))
}
