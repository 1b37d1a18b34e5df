// Package register records what a host knows of its sites. It records which sites are up and from
// which directories, their twins, and where their releases were staged from. The records are files
// beside the state of each site, which only root writes; there is no other database.
package register

import (
	"sync"

	"orrery/internal/host"
	"orrery/internal/site/twin"
)

// A Register is the records of the sites in the directories of a host.
type Register struct {
	Dirs  host.Dirs
	Known *KnownTwins // takes precedence over this host's records, or nil
}

// KnownTwins has the records of twins that were read from the hosts of sites. Several operations may use
// it at once.
type KnownTwins struct {
	mutex sync.Mutex
	twins map[string]twin.Record // by key
}

// Add adds the hosts' record of a twin.
func (k *KnownTwins) Add(r twin.Record) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.twins == nil {
		k.twins = map[string]twin.Record{}
	}
	k.twins[r.Key()] = r
}

// Remove removes the record of a twin that was destroyed, or that hosts no longer know.
func (k *KnownTwins) Remove(key string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.twins, key)
}

// Twin returns the record of the twin with a key, if it was read from hosts. A nil Known has none.
func (k *KnownTwins) Twin(key string) (r twin.Record, ok bool) {
	if k == nil {
		return r, false
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	r, ok = k.twins[key]
	return r, ok
}
