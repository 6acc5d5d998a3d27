"""Every sentence that people read, in Portuguese and in English."""

from enum import StrEnum
from typing import Final, NamedTuple

from policies.text import clean

_VALUE_LIMIT = 300  # characters of one foreign value inside a sentence


class Lang(StrEnum):
    """The languages of `--lang`."""

    PT = "pt"
    EN = "en"


TEXTS: Final[dict[str, tuple[str, str]]] = {
    # what a watch says while it waits
    "armed": (
        "armado: {target} até {until} (TTL {ttl})",
        "armed: {target} until {until} (TTL {ttl})",
    ),
    "countdown": ("⏳ {label} — faltam {left}", "⏳ {label} — {left} left"),
    "matched": ("casou: PID {pid}: {command}", "matched: PID {pid}: {command}"),
    "matched_more": (
        "casou: mais {count} processos",
        "matched: {count} more processes",
    ),
    "every_raised": (
        "--every {every} é menor que o piso; usando {floor}",
        "--every {every} is below the floor; using {floor}",
    ),
    "cannot_see": (
        "sem leitura de {label}: {reason}; continuo olhando",
        "cannot see {label}: {reason}; still looking",
    ),
    "retaken": (
        "lock {label} liberado e retomado por {holder}; continuo esperando",
        "lock {label} released and retaken by {holder}; still waiting",
    ),
    "maybe_retaken": (
        "lock {label} alterado ou retomado; continuo esperando",
        "lock {label} changed or retaken; still waiting",
    ),
    "someone": ("outro dono", "another holder"),
    "inotify_limit": (
        "sem eventos de arquivo: limite do inotify ({error}; veja "
        "/proc/sys/fs/inotify); continuo por leituras periódicas",
        "no file events: inotify limit ({error}; see /proc/sys/fs/inotify); "
        "going on by polling",
    ),
    "start_awaited": (
        "nada casa ainda; espero o começo por {start_within}",
        "nothing matches yet; waiting for its start for {start_within}",
    ),
    "kernel_thread": (
        "o PID {pid} é uma thread do kernel ({command}) e não termina",
        "PID {pid} is a kernel thread ({command}), which does not end",
    ),
    "interrupted": (
        "interrompido: a espera foi desfeita; para mantê-la, rode em segundo plano (&)",
        "interrupted: the wait is over; to keep it, run it in the background (&)",
    ),
    "stopped": (
        "encerrado por {signal}: a espera por {label} acaba aqui; arme de novo",
        "ended by {signal}: the wait for {label} ends here; arm it again",
    ),
    # why something could not be seen
    "errno": ("{name}: {path}", "{name}: {path}"),
    "denied": ("sem permissão: {path}", "permission denied: {path}"),
    "directory_missing": (
        "o diretório {path} não existe",
        "the directory {path} does not exist",
    ),
    "directory_vanished": (
        "o diretório {path} sumiu",
        "the directory {path} has vanished",
    ),
    "unmounted": ("{path} foi desmontado", "{path} was unmounted"),
    "hung": ("sem resposta: {what}", "no answer: {what}"),
    "probe_failed": ("a leitura falhou: {error}", "the look failed: {error}"),
    "proc_hidden": (
        "o /proc deste host esconde processos",
        "/proc of this host hides processes",
    ),
    "pids_stuck": (
        "a linha de comando do PID {pids} não pôde ser lida",
        "the command line of PID {pids} could not be read",
    ),
    "nothing_matches": (
        "nenhum processo encontrado; nunca visto",
        "no process found; never seen",
    ),
    "slow_regex": (
        "a expressão {regex} demora demais",
        "the expression {regex} takes too long",
    ),
    "no_pid_in": ("{path} não contém um PID", "{path} holds no PID"),
    "pidfile_missing": ("{path} não existe", "{path} does not exist"),
    # remarks at the end of a line
    "asleep": ("a máquina dormiu {span}", "the machine slept for {span}"),
    "near_lock": (
        "atenção: existe um lock de nome parecido: {name}",
        "careful: there is a lock with a near name: {name}",
    ),
    "orphan": (
        "órfão: dono (PID {pid}) não existe neste host: lock abandonado?",
        "órfão: holder (PID {pid}) does not exist on this host: abandoned lock?",
    ),
    # pings
    "ping_logged": (
        "ping gravado em {path}: {reason}",
        "ping written to {path}: {reason}",
    ),
    "ping_lost": (
        "PING NÃO ENTREGUE NEM GRAVADO ({reason}): {message}",
        "PING NEITHER DELIVERED NOR WRITTEN ({reason}): {message}",
    ),
    "no_channel": (
        "nenhum canal configurado ([notify] url)",
        "no channel configured ([notify] url)",
    ),
    "key_open": (
        "chave {path} legível por outros, não usada; rode: chmod 600 {path}",
        "key {path} readable by others, not used; run: chmod 600 {path}",
    ),
    "key_unreadable": (
        "chave {path} ilegível ({error}); confira [notify] key_file",
        "key {path} unreadable ({error}); check [notify] key_file",
    ),
    "key_malformed": (
        "a chave de {path} está vazia ou tem caracteres inválidos",
        "the key of {path} is empty or has invalid characters",
    ),
    "refused": ("recusado: {error}", "refused: {error}"),
    "not_delivered": ("não entregue: {error}", "not delivered: {error}"),
    "result_unknown": (
        "resultado desconhecido ({error}): pode chegar mais de uma vez, com a "
        "mesma chave",
        "result unknown ({error}): it may arrive more than once, under the same key",
    ),
    "given_up": (
        "desistência após {attempts} tentativas: {reason}",
        "given up after {attempts} attempts: {reason}",
    ),
    "unreadable_row": (
        "registro ilegível: {error}",
        "unreadable row: {error}",
    ),
    "channel_gone": (
        "o canal {channel} não está mais configurado",
        "the channel {channel} is no longer configured",
    ),
    "extra_missing": (
        "falta o extra {extra}; rode: pip install 'koder-monitor[{extra}]'",
        "the extra {extra} is missing; run: pip install 'koder-monitor[{extra}]'",
    ),
    "bad_apprise_url": (
        "o Apprise não entende o endereço {channel}; confira [notify] apprise",
        "Apprise does not understand the address {channel}; check [notify] apprise",
    ),
    "see_log": ("o motivo está ali", "the reason is there"),
    "ping_waits": (
        "o ping está na fila de envio; veja koder-monitor outbox",
        "the ping is in the outbox; see koder-monitor outbox",
    ),
    "cut_short": (
        "envio interrompido por um sinal",
        "sending was cut short by a signal",
    ),
    "whole_text": (
        "texto cortado no envio; inteiro aqui",
        "cut when sent; whole here",
    ),
    "flushed": ("{count} pings tentados agora", "{count} pings tried now"),
    "dead_alone": ("--dead só vale com flush", "--dead goes only with flush"),
    # what doctor finds
    "well": ("em ordem", "well"),
    "not_yet": ("ainda não existe", "not there yet"),
    "schema": ("esquema {version}", "schema {version}"),
    "runs": ("no ar, {armed} armados", "running, {armed} armed"),
    "no_service_now": (
        "parado; o primeiro comando que precisar o inicia ({reason})",
        "not running; the first command that needs it starts it ({reason})",
    ),
    "service_degraded": (
        "o serviço não consegue gravar; resultados são ditos sem registro",
        "the service cannot write; outcomes are told without a record",
    ),
    "other_version": (
        "o serviço é da versão {there}, este comando da {here}",
        "the service is of version {there}, this command of {here}",
    ),
    "not_writable": ("{path} não pode ser gravado", "{path} cannot be written"),
    "no_space": ("sem espaço para {path}", "no space for {path}"),
    "lies_aside": ("posto de lado: {paths}", "set aside: {paths}"),
    "outbox_state": (
        "{pending} pendentes, {dead} mortos",
        "{pending} pending, {dead} dead",
    ),
    "polls_only": ("só leituras periódicas", "polling only"),
    "mend_config": (
        "corrija o arquivo de configuração; deploy/config.toml explica cada chave",
        "mend the configuration file; deploy/config.toml explains every key",
    ),
    "mend_state": (
        "dê permissão de escrita, ou aponte KODER_MONITOR_STATE para outro lugar",
        "make it writable, or point KODER_MONITOR_STATE elsewhere",
    ),
    "mend_space": ("libere espaço em {path}", "free some space for {path}"),
    "mend_aside": (
        "veja o que contém e apague, ou restaure com o serviço parado",
        "see what it holds and delete it, or restore it with the service stopped",
    ),
    "mend_store": (
        "rode qualquer espera: o arquivo é posto de lado e refeito",
        "run any wait: the file is set aside and made anew",
    ),
    "mend_restart": (
        "encerre o serviço (kill PID de service.lock); nada se perde",
        "stop the service (kill the PID in service.lock); nothing is lost",
    ),
    "mend_settings": (
        "ponha os ajustes no arquivo de configuração e reinicie o serviço",
        "put the settings into the configuration file and restart the service",
    ),
    "mend_notify": (
        "defina [notify] url e key_file; até lá os pings vão para {path}",
        "set [notify] url and key_file; until then pings go to {path}",
    ),
    "mend_key": (
        "chmod 600 no arquivo da chave, ou outro [notify] key_file",
        "chmod 600 the key file, or choose another [notify] key_file",
    ),
    "mend_outbox": (
        "veja koder-monitor outbox; depois koder-monitor outbox flush --dead",
        "see koder-monitor outbox; then koder-monitor outbox flush --dead",
    ),
    "mend_inotify": (
        "aumente fs.inotify.max_user_instances e max_user_watches (sysctl)",
        "raise fs.inotify.max_user_instances and max_user_watches (sysctl)",
    ),
    "mend_locks": (
        "defina [locks] dir ou KODER_MONITOR_LOCKS_DIR",
        "set [locks] dir or KODER_MONITOR_LOCKS_DIR",
    ),
    "advice_renew": ("renovar", "renew"),
    "advice_remove": ("remover", "remove"),
    "advice_ask": ("perguntar", "ask"),
    "seen_by": ("visto por {means}", "seen by {means}"),
    "renewed": ("{id} renovado por {ttl}", "{id} renewed for {ttl}"),
    "removed": ("{id} removido", "{id} removed"),
    "acknowledged": ("{id} lido", "{id} acknowledged"),
    "circle_title": ("espera em círculo", "waiting in a circle"),
    # the store and the service
    "alone": (
        "sem serviço ({reason}); espero neste processo, e só enquanto ele viver",
        "no service ({reason}); waiting in this process, only as long as it lives",
    ),
    "no_service": ("o serviço não responde: {reason}", "no service answers: {reason}"),
    "not_started": (
        "o serviço não inicia; veja {log}",
        "the service does not start; see {log}",
    ),
    "service_there": (
        "já há um serviço para {state}; encerre-o antes",
        "there is a service for {state} already; stop it first",
    ),
    "service_silent": (
        "o serviço não diz nada, passado o prazo",
        "the service says nothing though the deadline has passed",
    ),
    "differs": (
        "este ambiente difere do serviço em {names}; vale o do serviço (veja "
        "koder-monitor doctor)",
        "this environment differs from the service's in {names}; the service's holds "
        "(see koder-monitor doctor)",
    ),
    "joined": (
        "já monitorado como {id}: espero junto",
        "already watched as {id}: joined",
    ),
    "detached": ("id: {id}", "id: {id}"),
    "goes_on": (
        "encerrado por {signal}: o monitor {id} segue no serviço e mandará o ping",
        "ended by {signal}: watch {id} goes on in the service, and will ping",
    ),
    "set_aside": (
        "{path} não serve ({reason}); posto de lado como {aside}",
        "{path} is of no use ({reason}); set aside as {aside}",
    ),
    "store_unusable": (
        "{path} não pode ser usado ({error}); confira espaço e permissões, ou rode "
        "koder-monitor doctor",
        "{path} cannot be used ({error}); check space and permissions, or run "
        "koder-monitor doctor",
    ),
    "write_failed": (
        "o estado não pôde ser gravado ({error}); confira espaço e permissões",
        "the state could not be written ({error}); check space and permissions",
    ),
    "store_slow": (
        "o banco de estado está ocupado; o resultado foi dito sem ele",
        "the state database is busy; the outcome was told without it",
    ),
    "left": ("interrompido por quem esperava", "interrupted by who waited"),
    "not_taken": (
        "o lock está livre, mas não pôde ser criado ({error}); crie-o à mão",
        "the lock is free but could not be made ({error}); make it by hand",
    ),
    # tables of list, show, history, outbox and koder-job; `|` parts the words
    "list_heads": (
        "ID|ALVO|ESTADO|HÁ|FALTA|ESPERAM|RÓTULO",
        "ID|TARGET|STATE|AGE|LEFT|WAITERS|LABEL",
    ),
    "history_heads": (
        "ID|ARMADO|TERMINADO|DUROU|ESTADO|ALVO|RÓTULO",
        "ID|ARMED|ENDED|TOOK|STATE|TARGET|LABEL",
    ),
    "ping_heads": (
        "ID|CANAL|ESTADO|TENTATIVAS|PRÓXIMA|MENSAGEM",
        "ID|CHANNEL|STATE|ATTEMPTS|NEXT|MESSAGE",
    ),
    "job_heads": (
        "ID|ESTADO|HÁ|AVISAR APÓS|SESSÃO|RÓTULO",
        "ID|STATE|AGE|NOTIFY AFTER|SESSION|LABEL",
    ),
    "waiter_heads": (
        "Nº|ESTADO|PRAZO|SESSÃO|RÓTULO|RETOMAR",
        "NO|STATE|DEADLINE|SESSION|LABEL|RESUME",
    ),
    "show_fields": (
        "id|alvo|rótulo|host|estado|armado|prazo|falta|terminado|última leitura|"
        "sem leitura|cadência|renovações|sessão|retomar|lido|dono|linha",
        "id|target|label|host|state|armed|deadline|left|ended|last look|"
        "without sight|every|renewals|session|resume|acknowledged|holder|line",
    ),
    "show_parts": ("quem espera|evidência|histórico", "waiters|evidence|trail"),
    "state_seen_held": ("ativo", "held"),
    "state_seen_released": ("livre", "free"),
    "state_seen_unknown": ("sem leitura", "unknown"),
    "state_released": ("liberado", "released"),
    "state_ended": ("terminou", "ended"),
    "state_expired": ("expirou", "expired"),
    "state_removed": ("removido", "removed"),
    "state_unseen": ("não visto", "never seen"),
    "waiter_waiting": ("espera", "waiting"),
    "waiter_told": ("avisado", "told"),
    "waiter_left": ("saiu", "left"),
    "ping_pending": ("pendente", "pending"),
    "ping_delivered": ("entregue", "delivered"),
    "ping_dead": ("não entregue", "dead"),
    "job_running": ("em curso", "running"),
    "job_watch": ("espera", "waiting"),
    "job_done": ("concluído", "done"),
    "job_failed": ("falhou", "failed"),
    "yes": ("sim", "yes"),
    "no": ("não", "no"),
    "nothing_armed": ("nada armado", "nothing is armed"),
    "no_history": ("nada foi armado até agora", "nothing has been armed so far"),
    "outbox_empty": (
        "nenhum ping pendente, nem entregue no último dia",
        "no ping is pending, none was delivered within a day",
    ),
    "no_jobs": (
        "nenhum job em curso, nem terminado no último dia",
        "no job is running, none has ended within a day",
    ),
    "more_lines": ("… mais {count}", "… {count} more"),
    "job_ended": (
        "{label} ({id}): {state} após {span}",
        "{label} ({id}): {state} after {span}",
    ),
    "job_over": (
        "o job {id} já terminou: {state}",
        "job {id} is over already: {state}",
    ),
    "job_lost": (
        "marcador não gravado: {reason}",
        "marker not stored: {reason}",
    ),
    "job_unwatched": (
        "--notify-after {span} só avisará com o serviço no ar: {reason}",
        "--notify-after {span} will ping only while the service runs: {reason}",
    ),
    "store_unread": (
        "{path} não pôde ser lido e conta como vazio; rode koder-monitor doctor",
        "{path} could not be read and counts as empty; run koder-monitor doctor",
    ),
    "output_failed": (
        "a saída não pôde ser escrita ({error}); confira o espaço ou o destino",
        "the output could not be written ({error}); check its space or place",
    ),
    # circles, assessing and renewing
    "circle": (
        "⚠️ CÍRCULO: {steps} — combinem quem solta primeiro",
        "⚠️ CÍRCULO: {steps} — agree on who lets go first",
    ),
    "circle_step": (
        "{session} espera o lock {lock} de {holder}",
        "{session} waits for lock {lock} of {holder}",
    ),
    "circle_steps": ("{first}; {rest}", "{first}; {rest}"),
    "assess_unseen": ("não deu para olhar: {reason}", "could not look: {reason}"),
    "assess_nothing": (
        "esta espera não deixa ver sinais de vida",
        "this wait shows no signs of life",
    ),
    "assess_lock_gone": (
        "o lock não está mais lá: nada a esperar",
        "the lock is no longer there: nothing to wait for",
    ),
    "assess_updated": (
        "o arquivo do lock mudou desde a última avaliação",
        "the lock file has changed since the last assessment",
    ),
    "assess_new_commits": (
        "commits no componente desde a última avaliação: {count}",
        "commits in the component since the last assessment: {count}",
    ),
    "assess_commits": (
        "commits no componente desde que o lock foi tomado: {count}, o último há {ago}",
        "commits in the component since the lock was taken: {count}, the last {ago} "
        "ago",
    ),
    "assess_no_commits": (
        "nenhum commit no componente desde que o lock foi tomado",
        "no commit in the component since the lock was taken",
    ),
    "assess_commits_unseen": (
        "os commits do componente não puderam ser lidos",
        "the commits of the component could not be read",
    ),
    "assess_holder_alive": (
        "o dono (PID {pid}) está vivo neste host",
        "the holder (PID {pid}) is alive on this host",
    ),
    "assess_holder_unseen": (
        "não dá para ver daqui se o dono ({holder}) ainda vive",
        "from here it cannot be seen whether the holder ({holder}) still lives",
    ),
    "assess_no_holder": (
        "o lock não diz quem é o dono",
        "the lock does not say who holds it",
    ),
    "assess_age": (
        "o arquivo do lock foi escrito há {ago}",
        "the lock file was written {ago} ago",
    ),
    "assess_future": (
        "a data do arquivo do lock está no futuro: idade desconhecida",
        "the date of the lock file is in the future: age unknown",
    ),
    "assess_conflict": (
        "os sinais se contradizem: pergunte ao operador",
        "the signs contradict each other: ask the operator",
    ),
    "assess_take_over": (
        "lock parado: proponha ao operador assumi-lo (take-over); nada é removido aqui",
        "stale lock: propose a take-over to the operator; nothing is removed here",
    ),
    "assess_over": (
        "o trabalho já terminou: nada a esperar",
        "the work is over already: nothing to wait for",
    ),
    "assess_zombie": (
        "o PID {pid} terminou, mas o pai não o recolheu (zumbi)",
        "PID {pid} has ended, but its parent has not collected it (zombie)",
    ),
    "assess_stopped": (
        "o PID {pid} está parado por um sinal (estado T)",
        "PID {pid} is stopped by a signal (state T)",
    ),
    "assess_blocked": (
        "o PID {pid} está preso no kernel (estado D)",
        "PID {pid} waits inside the kernel (state D)",
    ),
    "assess_cpu": (
        "o PID {pid} usou {used} s de CPU desde a última avaliação",
        "PID {pid} used {used} s of CPU since the last assessment",
    ),
    "assess_children": (
        "os processos abaixo do PID {pid} mudaram desde a última avaliação",
        "the processes below PID {pid} have changed since the last assessment",
    ),
    "assess_on_cpu": ("o PID {pid} está usando a CPU", "PID {pid} is on the CPU"),
    "assess_log": (
        "o log mudou {bytes} bytes desde a última avaliação",
        "the log has changed by {bytes} bytes since the last assessment",
    ),
    "assess_cpu_unseen": (
        "o uso de CPU do PID {pid} não pôde ser lido",
        "the CPU use of PID {pid} could not be read",
    ),
    "assess_log_unseen": (
        "o log {path} não pôde ser lido",
        "the log {path} could not be read",
    ),
    "assess_quiet": ("sem uso de CPU há {span}", "no use of CPU for {span}"),
    "assess_quiet_log": (
        "sem uso de CPU e sem log novo há {span}",
        "no use of CPU and nothing new in the log for {span}",
    ),
    "assess_one_look": (
        "um só olhar não mostra se avança: avalie de novo em alguns minutos",
        "one look does not show whether it gets on: assess again in some minutes",
    ),
    "assess_triage": (
        "processo travado: encaminhe para triagem (triage); nada é encerrado aqui",
        "hung process: hand it to triage; nothing is ended here",
    ),
    "assess_idle": (
        "renovações seguidas sem progresso: {count}",
        "renewals in a row without progress: {count}",
    ),
    "renew_blind": (
        'a última avaliação não mostrou progresso; diga por quê: --why "motivo"',
        'the last assessment showed no progress; say why to renew: --why "reason"',
    ),
    # errors of use: each says what to do
    "no_watch": (
        "nenhum monitor com o id {id}; veja koder-monitor list --all",
        "no watch with the id {id}; see koder-monitor list --all",
    ),
    "not_renewable": (
        "o monitor {id} não pode ser renovado ({state}); arme de novo",
        "watch {id} cannot be renewed ({state}); arm it again",
    ),
    "watched_anew": (
        "a condição de {id} já é esperada por outro monitor; renove esse",
        "the condition of {id} is watched by another watch by now; renew that one",
    ),
    "no_why": (
        "diga o motivo com --why; ele é anunciado a quem espera",
        "say why with --why; it is told to everybody who waits",
    ),
    "said": ("{text}", "{text}"),
    "not_armed": (
        "o monitor {id} já terminou; veja koder-monitor show {id}",
        "watch {id} has ended already; see koder-monitor show {id}",
    ),
    "ambiguous": (
        "{id} é o começo de vários: {found}; dê mais letras",
        "{id} begins several: {found}; give more letters",
    ),
    "bad_target": (
        "'{target}' não é um alvo ({error}); use por exemplo 'lock meta-context'",
        "'{target}' is no target ({error}); use for example 'lock meta-context'",
    ),
    "unknown_kind": (
        "'{kind}' não é um tipo de espera; use {known}",
        "'{kind}' is no kind of wait; use {known}",
    ),
    "error": ("erro: {what}", "error: {what}"),
    "see_help": (
        "{what}; veja '{program} --help'",
        "{what}; see '{program} --help'",
    ),
    "internal": (
        "erro interno: {error}; rode com KODER_MONITOR_DEBUG=1 e relate",
        "internal error: {error}; run with KODER_MONITOR_DEBUG=1 and report it",
    ),
    "bad_duration": (
        "{name} {value} não é uma duração; use por exemplo 45s, 30m, 1h30m, 2d ou "
        "segundos (máximo 365d)",
        "{name} {value} is no duration; use for example 45s, 30m, 1h30m, 2d or "
        "seconds (365d at most)",
    ),
    "bad_slug": (
        "'{slug}' não é um slug; use letras, dígitos, '.', '_' e '-', ou um caminho "
        "com '/', como ./{slug}",
        "'{slug}' is no slug; use letters, digits, '.', '_' and '-', or a path with "
        "'/', as ./{slug}",
    ),
    "bad_path": (
        "{name} '{path}' não é um caminho possível; confira",
        "{name} '{path}' is no possible path; check it",
    ),
    "bad_pid": (
        "'{pid}' não é um PID; use um número de 1 a 4194304",
        "'{pid}' is no PID; use a number from 1 to 4194304",
    ),
    "bad_regex": (
        "expressão regular inválida: {error}; corrija, ou use --match para "
        "texto literal",
        "invalid regular expression: {error}; mend it or use --match for literal text",
    ),
    "empty_pattern": (
        "um padrão vazio casa com tudo; diga parte da linha de comando",
        "an empty pattern matches everything; give part of the command line",
    ),
    "bad_label": (
        "o rótulo '{label}' não diz nada; diga o que é esperado, como 'build da API'",
        "the label '{label}' says nothing; say what is awaited, as 'API build'",
    ),
    "bad_session": (
        "sessão '{session}' inválida; use letras, dígitos, '.', '_' e '-'",
        "invalid session '{session}'; use letters, digits, '.', '_' and '-'",
    ),
    "no_lock_dir": (
        "nenhum diretório de locks: defina [locks] dir ou KODER_MONITOR_LOCKS_DIR "
        "(o padrão {path} não existe)",
        "no lock directory: set [locks] dir or KODER_MONITOR_LOCKS_DIR "
        "(the default {path} does not exist)",
    ),
    "no_cwd": (
        "o diretório atual foi apagado; vá para outro (cd)",
        "the current directory was deleted; go to another (cd)",
    ),
    "is_directory": (
        "{path} é um diretório; dê o caminho do arquivo de lock",
        "{path} is a directory; give the path of the lock file",
    ),
    "own_pid": (
        "o PID {pid} é o próprio monitor; dê o PID do trabalho",
        "PID {pid} is the monitor itself; give the PID of the work",
    ),
    "own_pidfile": (
        "pidfile aponta para o próprio monitor (PID {pid}): {path}; está velho",
        "the pidfile points to the monitor itself (PID {pid}): {path}; it is stale",
    ),
    "foreign_pidfile": (
        "o PID {pid} de {path} aqui é {command}, que não pode tê-lo escrito: pidfile "
        "velho ou de outro contêiner; use --pid ou --match",
        "PID {pid} of {path} is {command} here, which cannot have written it: a stale "
        "pidfile or another container's; use --pid or --match",
    ),
    "start_within_idle": (
        "--start-within só vale com --match, --regex ou --pidfile; retire-o",
        "--start-within goes only with --match, --regex or --pidfile; drop it",
    ),
    "no_message": (
        'a mensagem está vazia; use: notify-release "texto"',
        'the message is empty; use: notify-release "text"',
    ),
    "config_file": (
        "{path}: {error}; corrija o arquivo",
        "{path}: {error}; mend the file",
    ),
    "config_value": (
        "{name} {value} não vale: {error}",
        "{name} {value} will not do: {error}",
    ),
    "unknown_key": (
        "chave desconhecida {name}; conhecidas: {known}",
        "unknown key {name}; known: {known}",
    ),
    "url_scheme": (
        "use http:// ou https:// com um host e sem senha no endereço",
        "use http:// or https:// with a host and no password in the address",
    ),
    "unknown_watch": (
        "nenhum monitor com id '{id}'; armados: {known}; veja koder-monitor history",
        "no watch of id '{id}'; armed: {known}; see koder-monitor history",
    ),
    "ambiguous_watch": (
        "'{id}' pode ser {known}; dê mais do id",
        "'{id}' may be {known}; give more of the id",
    ),
    "watch_needs_terminal": (
        "--watch precisa de um terminal; use --json ou rode sem --watch",
        "--watch needs a terminal; use --json or run without --watch",
    ),
    "unknown_job": (
        "nenhum job {name} em curso; em curso: {known}; veja koder-job list",
        "no job {name} is running; running: {known}; see koder-job list",
    ),
    "ambiguous_job": (
        "{name} pode ser {known}; dê o id",
        "{name} may be {known}; give the id",
    ),
    "no_only_job": (
        "diga qual job: id ou rótulo; em curso nesta sessão: {known}",
        "say which job, by id or label; running in this session: {known}",
    ),
    "job_is_watch": (
        "{id} é um monitor; use koder-monitor remove {id} --why MOTIVO",
        "{id} is a watch; use koder-monitor remove {id} --why REASON",
    ),
    "one_of": ("use {choices}", "use {choices}"),
}


class Phrase(NamedTuple):
    """A sentence by its key, with its values, not yet in any language.

    No dataclass, which would cost every hook and status line the import of `inspect`.
    """

    key: str
    values: "dict[str, str | int | Phrase]"

    def render(self, lang: Lang) -> str:
        """Return the sentence with every foreign value cleaned and kept short."""
        template = TEXTS[self.key][0 if lang is Lang.PT else 1]
        return template.format_map(
            {
                name: value.render(lang)
                if isinstance(value, Phrase)
                else clean(str(value), _VALUE_LIMIT)
                for name, value in self.values.items()
            }
        )


def phrase(key: str, **values: str | int | Phrase) -> Phrase:
    """Return a `Phrase`; a key that no text has is a `KeyError` at once.

    Raises:
        KeyError: for an unknown key.
    """
    if key not in TEXTS:
        raise KeyError(key)
    return Phrase(key, values)
