package control

import "orrery/internal/site"

// A Confirmer asks the caller for consent to changes that cannot be undone or that disturb production.
type Confirmer interface {
	// Ask returns nil if the caller agrees, and a Refused problem if not. Asked reports whether Ask
	// waited for an answer. In that case the caller of Ask must check again, since the hosts may
	// have changed meanwhile.
	Ask(q Question) (asked bool, err error)
}

// A Question describes a change that needs the caller's consent. Answers name the site.
type Question struct {
	About Consent
	Site  string // name of the site
	Why   string // what would happen, in whole sentences
	// Plain means that the site is not in production, so that a plain yes in advance is enough. The
	// caller need not name the site.
	Plain bool
	// LetGo, if not nil, must be called before waiting for an answer. It releases the lock, so that
	// other processes need not wait.
	LetGo func()
}

// A Consent is a kind of change that needs consent.
type Consent string

// The changes that need consent.
const (
	Production Consent = "production" // nodes of a production site are disturbed
	Loss       Consent = "loss"       // nodes of another site are destroyed; a caller who cannot be asked agrees
	Volumes    Consent = "volumes"    // persistent data is deleted permanently
	Replace    Consent = "replace"    // existing data is replaced by restored data
	Restore    Consent = "restore"    // data written since a snapshot is lost
	Moves      Consent = "moves"      // nodes move to other hosts that were chosen for them
	Forget     Consent = "forget"     // what the hosts keep of a site is deleted permanently
	Trust      Consent = "trust"      // the hosts' copies of a release are used
	Paths      Consent = "paths"      // volumes of a backup are restored to directories named in its site file
)

// AssumeYes is the Confirmer of a caller who agreed to everything in advance.
type AssumeYes struct{}

// Ask agrees.
func (AssumeYes) Ask(Question) (bool, error) { return false, nil }

// unlockingConfirmer is the Confirmer of a caller that holds a site's lock. It releases the lock before waiting
// for an answer.
type unlockingConfirmer struct {
	Confirmer
	letGo func()
}

func (o unlockingConfirmer) Ask(q Question) (asked bool, err error) {
	q.LetGo = o.letGo
	return o.Confirmer.Ask(q)
}

// AskProduction asks for consent if the site is in production. What describes the change.
func (c *Session) AskProduction(s *site.Site, what string) (asked bool, err error) {
	if !s.Production {
		return false, nil
	}
	return c.Confirmer.Ask(Question{About: Production, Site: s.Name, Why: s.Name + " is in production. " + what})
}
