package control

import (
	"cmp"
	"fmt"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// Noted runs do and records it in the journal if the caller is a member who works in nodes.
func Noted(c *Session, s *site.Site, do func() error) error {
	if c.Member == nil {
		return do()
	}
	var err error
	unnoted := noted(c, s, c.Command, func() string {
		if err = do(); problem.Exit(err) != 0 {
			return fmt.Sprintf("exit status %d", problem.Exit(err))
		}
		return "done"
	})
	return cmp.Or(err, unnoted)
}
