package control

import (
	"cmp"
	"fmt"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// JournalIfMember runs do and records it in the journal if the caller is a member who works in nodes.
func JournalIfMember(c *Session, s *site.Site, do func() error) error {
	if c.Member == nil {
		return do()
	}
	var err error
	unnoted := journalResult(c, s, c.Command, func() string {
		if err = do(); problem.ExitCode(err) != 0 {
			return fmt.Sprintf("exit status %d", problem.ExitCode(err))
		}
		return "done"
	})
	return cmp.Or(err, unnoted)
}
