/** The name and its sign. */
import classes from './Brand.module.css';

export function Brand() {
  return (
    <span className={classes['brand']}>
      <img src="/convoy.svg" alt="" width={24} height={24} />
      Convoy
    </span>
  );
}
