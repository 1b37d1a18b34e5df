# Makes the data directory on the volume, unless there is one. Safe to run again.
data=/var/lib/mysql unfinished=/var/lib/mysql/orrery-unfinished

# The number behind the name "mysql" is chosen by apt, so another layer may have another.
if [ -n "$(find $data -maxdepth 1 ! -user mysql)" ]; then
    chown -R mysql:mysql $data
fi
if [ -e $unfinished ] || [ -z "$(ls -A $data)" ]; then
    touch $unfinished
    find $data -mindepth 1 ! -path $unfinished -delete # which a killed run may have left
    mariadb-install-db --user=mysql --datadir=$data --skip-test-db --auth-root-authentication-method=socket >/dev/null
    rm $unfinished
fi
