package cli

import (
	"orrery/internal/problem"
)

// said keeps the exit status of an error that has been printed already.
func said(err error) error {
	if err == nil {
		return nil
	}
	return problem.Status(problem.Exit(err))
}
